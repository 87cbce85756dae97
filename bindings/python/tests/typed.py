"""What a type checker must accept, and what it must not: the comments are errors that it has to find."""

from datetime import date
from pathlib import Path
from typing import Any, assert_type

import contextweaver_rs as cw

catalog = cw.Catalog([{"name": "get_oncall", "description": "Who is on call."}], server="ops")
router = cw.Router(catalog, config={"top_k": 3}, model=False)
router = cw.Router(Path("tools.json"), config="routing.toml")
route = router.route("who is on call", 5, exclude=["a"], no_destructive=True)
assert_type(route, cw.Route)
assert_type(route[0].card, str)
assert_type([choice.score for choice in route], list[float])
assert_type(route.as_tools("openai"), list[dict[str, Any]])
assert_type(route.question, str | None)
assert_type({tool.id: tool.args_schema for tool in catalog}, dict[str, dict[str, Any] | None])
route.as_tools("cobol")  # type: ignore[arg-type]
router.route(3)  # type: ignore[arg-type]
router.route("x", namespaces="ops", top=3)  # type: ignore[call-arg]
cw.Router()  # type: ignore[call-arg]

manager = cw.ContextManager(config={"budgets": {"answer": 900}})
manager.ingest("u1", "user_turn", "Hello.")
manager.ingest("u1", "song", "Hello.")  # type: ignore[arg-type]
assert_type(manager.ingest_tool_result("c1", {"rows": []}).for_model, str)
assert_type(manager.ingest_envelope("c1", cw.compact("x")), str)
assert_type(manager.handoff("x", budget=5).session(), cw.Session)
manager.session().handoff(audience="advisor")
manager.handoff(audience="judge")  # type: ignore[arg-type]
assert_type(manager.build("answer", "x", budget=500).tokens, int)
assert_type(manager.session().manager(), cw.ContextManager)
assert_type(manager.view("artifact:x", "head:5").next, str | None)

memory = cw.consolidate({"monday": manager.session(), "tuesday": "tuesday.session"}, days={"monday": date(2026, 11, 24)})
assert_type(memory.facts, list[tuple[str, str]])
assert_type(cw.consolidate([Path("a.session")], memories=[memory, "b.json"], as_of="2026-11-24"), cw.Memory)
cw.consolidate([manager.session()])  # type: ignore[list-item]


def heard(phase: str, stats: dict[str, Any]) -> None: ...


cw.ContextManager(memory=memory, summarizer=lambda content, media_type, tokens: content[:tokens], on_build=heard)
cw.ContextManager(token_counter=len, redactor=str.upper)
cw.ContextManager(token_counter=str.upper)  # type: ignore[arg-type]

envelope = cw.compact(b"bytes", tokens=100)
assert_type(envelope.artifacts[0].handle, str)
assert_type(cw.count_tokens("x", "o200k_base"), int)
cw.count_tokens("x", "words")  # type: ignore[arg-type]
evaluation = cw.evaluate(catalog, [{"id": "q", "query": "x", "relevant": []}], engine=lambda query: [query])
assert_type(evaluation.measures["recall@5"], float)
try:
    cw.Router("none.json")
except cw.CatalogError as error:
    assert_type(error, cw.CatalogError)
    base: cw.ContextweaverError = error
