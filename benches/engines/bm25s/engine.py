"""bm25s with its defaults, English stop words and the Snowball stemmer that its manual uses."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

import bm25s
import Stemmer


def build(tools):
    stemmer = Stemmer.Stemmer("english")
    ids = [tool["id"] for tool in tools]

    def tokens(texts):
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([protocol.text(tool) for tool in tools]), show_progress=False)

    def search(query, k):
        # All of them, so that equal scores at the end of the list are ordered by id and not by position.
        found, scores = index.retrieve(tokens([query]), k=len(ids), show_progress=False)
        return protocol.best((ids[at] for at in found[0]), scores[0], k)

    return search


protocol.serve("bm25s", build)
