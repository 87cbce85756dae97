"""rank_bm25: BM25Okapi over lower-case words split at white space, as its manual does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

from rank_bm25 import BM25Okapi


def build(tools):
    ids = [tool["id"] for tool in tools]
    index = BM25Okapi([protocol.text(tool).lower().split() for tool in tools])
    return lambda query, k: protocol.best(ids, index.get_scores(query.lower().split()), k)


protocol.serve("rank-bm25", build)
