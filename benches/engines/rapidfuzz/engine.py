"""RapidFuzz: the token set ratio of the query to name and description, the usual fuzzy search over tools."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

from rapidfuzz import fuzz, process, utils


def build(tools):
    texts = {tool["id"]: protocol.sentence(tool) for tool in tools}

    def search(query, k):
        found = process.extract(
            query, texts, scorer=fuzz.token_set_ratio, processor=utils.default_process, limit=len(texts)
        )
        return protocol.best((id for _, _, id in found), (score for _, score, _ in found), k)

    return search


protocol.serve("rapidfuzz", build)
