"""A call from Python costs little more than the engine itself, with any build."""

import json
import time

from conftest import ROOT

import contextweaver_rs as cw
from contextweaver_rs._native import _engine_seconds

# A share of the time of the engine, and seconds a call.
SHARE, CALL = 1.3, 5e-6


def thousand():
    """A thousand tools: those of the three collections, and again under other names."""
    folders = [ROOT / "gold" / name for name in ("household", "workbench", "everyday")]
    tools = [tool for folder in folders for tool in cw.Catalog.from_path(folder / "catalog.json").as_tools("mcp")]
    again = [{**tool, "name": f"{tool['name']}_{number}"} for number in (2, 3) for tool in tools]
    named = {tool["name"]: tool for tool in [*tools, *again]}
    return list(named.values())[:1000]


def test_a_route_over_a_thousand_tools():
    router = cw.Router(thousand())
    assert len(router.catalog) == 1000
    lines = (ROOT / "gold/workbench/queries.jsonl").read_text().splitlines()
    queries = [json.loads(line)["query"] for line in lines[::10]]
    # The best of several: what else the machine does only adds.
    engine, python = [], []
    for _ in range(9):
        engine.append(_engine_seconds(router, queries, 3) / 3 / len(queries))
        started = time.perf_counter()
        for _ in range(3):
            for query in queries:
                router.route(query)
        python.append((time.perf_counter() - started) / 3 / len(queries))
    engine, python = min(engine), min(python)
    print(f"\na route over 1000 tools: {python * 1e6:.1f} us from Python, {engine * 1e6:.1f} us in the engine")
    assert python <= SHARE * engine + CALL, f"{python * 1e6:.1f} us from Python, {engine * 1e6:.1f} us in the engine"
