"""LangGraph bigtool: its default retrieval tool over a store in memory, with all-MiniLM-L6-v2."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph_bigtool.tools import get_default_retrieval_tool

from minilm import MiniLm

LIMIT = 100


def build(tools):
    model = MiniLm()
    embed = {"embed": lambda texts: model.embed(texts).tolist(), "dims": 384, "fields": ["description"]}
    store = InMemoryStore(index=embed)
    store.batch(
        [PutOp(("tools",), tool["id"], {"description": protocol.sentence(tool)}, ["description"]) for tool in tools]
    )
    retrieve, _ = get_default_retrieval_tool(("tools",), limit=LIMIT)
    return lambda query, k: [(id, None) for id in retrieve(query, store=store)[:k]]


protocol.serve("langgraph-bigtool", build)
