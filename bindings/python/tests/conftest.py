"""What the tests share: the command, and the collections."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The collections of the repository, and the public ones where they are.
COLLECTIONS = sorted(
    path.parent
    for folder in (ROOT / "gold", ROOT / "../shared/data/gold")
    for path in folder.glob("*/catalog.json")
    if (path.parent / "queries.jsonl").is_file()
)
HOUSEHOLD = ROOT / "gold/household/catalog.json"


@pytest.fixture(scope="session")
def command():
    """Runs the command; gives what it prints, or the message of its error."""

    def run(*arguments, stdin=b""):
        words = [os.environ["CONTEXTWEAVER"], *map(str, arguments)]
        done = subprocess.run(words, input=stdin, capture_output=True)
        if done.returncode == 2:
            return done.stderr.decode().removeprefix("error: ").removesuffix("\n")
        return done.stdout.decode()

    return run
