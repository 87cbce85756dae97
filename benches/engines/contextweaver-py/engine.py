"""The Python package contextweaver: its router as it comes, or with `--flat` its scorer over every tool."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

from contextweaver._utils import TfIdfScorer
from contextweaver.routing.router import Router
from contextweaver.routing.tree import TreeBuilder
from contextweaver.types import SelectableItem


def item(tool, id):
    return SelectableItem(
        id=id,
        kind="tool",
        name=tool["name"],
        description=tool.get("description") or "",
        tags=tool.get("tags", []),
        namespace=tool.get("server") or "",
        args_schema=tool.get("inputSchema") or {},
    )


def router(tools):
    # Its tree is cut along the order of the ids, so they are what its users give it: server and name.
    named = protocol.apart(tools, [f"{tool.get('server') or 'tools'}:{tool['name']}" for tool in tools])
    ids = {name: tool["id"] for name, tool in zip(named, tools)}
    items = [item(tool, id) for tool, id in zip(tools, ids)]
    router = Router(TreeBuilder().build(items), items=items)
    router.route("warm up")

    def search(query, k):
        found = router.route(query)
        return [(ids[id], score) for id, score in zip(found.candidate_ids, found.scores)][:k]

    return search


def flat(tools):
    ids, scorer = [tool["id"] for tool in tools], TfIdfScorer()
    scorer.fit([" ".join([t["name"], t.get("description") or "", *t.get("tags", [])]) for t in tools])
    return lambda query, k: protocol.best(ids, scorer.score_all(query), k)


protocol.serve("contextweaver", flat if "--flat" in sys.argv else router)
