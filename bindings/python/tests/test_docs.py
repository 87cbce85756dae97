"""The pages say what is: their programs run and print what stands below them, and the reference is that of the stubs."""

import contextlib
import io
import json
import re
import shutil
import sys

import pytest
import reference
from conftest import HOUSEHOLD, ROOT

PAGES = ["docs/python.md", "README.md", "packaging/python/README.md"]
# A block of a page: its language, and what it holds.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_programs(page, tmp_path, monkeypatch):
    """The blocks of a page are one program; a block of text below one is what it prints."""
    shutil.copy(HOUSEHOLD, tmp_path / "tools.json")
    shutil.copy(HOUSEHOLD.with_name("queries.jsonl"), tmp_path)
    chat = [
        {"role": "user", "content": "Why did the nightly job fail?"},
        {"role": "assistant", "content": "The disk was full."},
    ]
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text().split(reference.BEGIN)[0]
    blocks = BLOCK.findall(text)
    names, ran = {}, 0
    for (language, program), (follows, expected) in zip(blocks, [*blocks[1:], ("", "")]):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, f"{page}, block {ran + 1}", "exec"), names)
        ran += 1
        if follows == "text":
            assert printed.getvalue() == expected, program
    assert ran, f"{page} has no program"


def test_the_reference_is_that_of_the_stubs():
    page = reference.PAGE.read_text()
    assert page == reference.written(page), "write it with: scripts/python-test --write"


def test_every_recipe_is_named():
    page = (ROOT / "docs/python.md").read_text()
    for path in (ROOT / "examples/python").glob("*.py"):
        assert path.name in page, path.name
    assert sys.version_info >= (3, 10)
