"""tiktoken without a download: its files are written from the vocabularies of this repository, which are the same tokens.

An engine runs in a folder of its own, where the files are put before it counts tokens.
"""

import base64
import hashlib
import os
from pathlib import Path

SOURCES = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
VOCABULARIES = Path(__file__).resolve().parents[3] / "crates" / "core" / "vocabularies"


def lines(vocabulary):
    """A length and that many bytes for each token, in the order of their ranks, as tiktoken writes them."""
    at, rank = 0, 0
    while at < len(vocabulary):
        length = vocabulary[at]
        token = vocabulary[at + 1 : at + 1 + length]
        yield base64.b64encode(token) + b" %d\n" % rank
        at, rank = at + 1 + length, rank + 1


def install(folder):
    """Writes the files into `folder` and names it to tiktoken."""
    folder.mkdir(exist_ok=True)
    for path in VOCABULARIES.glob("*.bin"):
        # tiktoken looks for a file by the digest of its address, and holds its content against a digest of its own.
        name = hashlib.sha1(SOURCES.format(path.stem).encode()).hexdigest()
        (folder / name).write_bytes(b"".join(lines(path.read_bytes())))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
