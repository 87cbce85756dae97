"""The module gives the bytes of the command: routes, tools, prompts, envelopes, measures and messages."""

import datetime
import json
import pickle

import pytest
from conftest import COLLECTIONS, HOUSEHOLD, ROOT

import contextweaver_rs as cw

ASKED = 4  # Queries asked of each collection: each one starts the command.


def document(kind, text):
    """JSON as the command prints it: what the module writes, in the envelope of all commands."""
    return '{\n  "schema_version": 1,\n  "kind": "%s",%s\n' % (kind, text[1:])


@pytest.mark.parametrize("folder", COLLECTIONS, ids=lambda folder: folder.name)
def test_routes(folder, command, tmp_path):
    catalog = cw.Catalog.from_path(folder / "catalog.json")
    router, index = cw.Router(catalog), tmp_path / "index"
    router.save(index)
    command("build", "--catalog", folder / "catalog.json", "--out", tmp_path / "theirs")
    assert index.read_bytes() == (tmp_path / "theirs").read_bytes()
    queries = [json.loads(line)["query"] for line in (folder / "queries.jsonl").read_text().splitlines()]
    for query in queries[:: max(1, len(queries) // ASKED)]:
        route = router.route(query, 5)
        ask = ("route", "--catalog", folder / "catalog.json", "--index", index, "--top-k", 5)
        assert document("route", route.to_json(indented=True)) == command(*ask, "--format", "json", "--query", query)
        shown = command(*ask, "--explain", "--query", query)
        for choice in route:
            assert f"{choice.card}\n      {choice.explanation}\n" in shown


@pytest.mark.parametrize("form", ["openai", "openai-responses", "anthropic", "gemini", "mcp", "weaver-spec"])
def test_tools_of_a_request(form, command, tmp_path):
    names = tmp_path / "names.json"
    query = "turn on the lights in the kitchen"
    shown = command("route", "--catalog", HOUSEHOLD, "--as", form, "--names", names, query)
    route = cw.Router(HOUSEHOLD).route(query)
    assert route.as_tools(form) == json.loads(shown)
    assert route.call_names(form) == json.loads(names.read_text())
    assert cw.Catalog.from_path(HOUSEHOLD).as_tools(form, route.ids) == json.loads(shown)


def test_tools_of_a_request_are_as_many_as_were_asked_for(command, tmp_path):
    listed = {
        "server": "shop",
        "tools": [{"name": "price_of_lamp", "description": "What a lamp costs."}, {"name": "lamp_sizes"}],
        "resources": [{"uri": "shop://lamp", "name": "lamp", "description": "The lamp."}],
    }
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(listed))
    shown = json.loads(command("route", "--catalog", tools, "--top-k", "2", "--as", "openai", "lamp"))
    router = cw.Router(tools)
    assert len(shown) == 2 and router.route("lamp", 2, callable_only=True).as_tools("openai") == shown
    assert len(router.route("lamp", 2).as_tools("openai")) == 1


def test_filters(command):
    router, catalog = cw.Router(HOUSEHOLD), cw.Catalog.from_path(HOUSEHOLD)
    some, query = catalog.ids[0], "turn on the lights"
    cases = [
        (dict(namespaces=["maps"]), ["--namespace", "maps"]),
        (dict(no_destructive=True, quota=1), ["--no-destructive", "--quota", "1"]),
        (dict(pins=[some]), ["--pin", some]),
        (dict(exclude=[some], called=[some], last_result="done"), ["--exclude", some, "--called", some, "--last-result", "done"]),
    ]
    for options, flags in cases:
        shown = command("route", "--catalog", HOUSEHOLD, *flags, "--format", "json", query)
        assert document("route", router.route(query, **options).to_json(indented=True)) == shown
    assert router.browse("/") == command("route", "--catalog", HOUSEHOLD, "--path", "/").splitlines()


def test_configuration(command, tmp_path):
    file = tmp_path / "bm25.toml"
    file.write_text('scorer = "bm25"\ntop_k = 3\n')
    shown = command("route", "--catalog", HOUSEHOLD, "--config", file, "--format", "json", "pay a bill")
    for config in (file, str(file), {"scorer": "bm25", "top_k": 3}):
        assert document("route", cw.Router(HOUSEHOLD, config=config).route("pay a bill").to_json(indented=True)) == shown


def test_the_encoder(command, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTWEAVER_VECTORS", str(tmp_path))
    shown = command("route", "--catalog", HOUSEHOLD, "--model", "--format", "json", "it is dark in here")
    route = cw.Router(HOUSEHOLD, model=True).route("it is dark in here")
    assert document("route", route.to_json(indented=True)) == shown
    assert any(source == "(model)" for source, _ in route[0].parts)


RESULTS = {
    "log": "".join(f"2024-05-01 INFO request {n} took {n} ms\n" for n in range(3000)).encode(),
    "small": b"two\nlines\n",
    "rows": json.dumps([{"id": n, "name": f"row {n}"} for n in range(900)]).encode(),
    "failed": json.dumps({"content": [{"type": "text", "text": "no such table"}], "isError": True}).encode(),
    "picture": b"\x89PNG\r\n\x1a\n\xff\x00",
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name, command, tmp_path):
    file = tmp_path / name
    file.write_bytes(RESULTS[name])
    found = cw.compact(RESULTS[name], name=name, tokens=150, count_original=True)
    flags = ("firewall", file, "--tokens", 150, "--original-tokens")
    if name != "picture":  # Whose address is that of the file.
        assert str(found) == found.summary == command(*flags)
        assert document("firewall", found.to_json(indented=True)) == command(*flags, "--format", "json")
    assert found.is_compacted == (name in ("log", "rows", "picture"))


def conversation():
    return {
        "messages": [
            {"role": "user", "content": "Why did the nightly job fail?"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": '{"job": "nightly"}'}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": RESULTS["log"].decode() + "ERROR disk full\n"},
            {"role": "assistant", "content": "The disk was full."},
        ]
    }


def test_sessions(command, tmp_path):
    events, file, ours = tmp_path / "chat.json", tmp_path / "theirs.session", tmp_path / "ours.session"
    events.write_text(json.dumps(conversation()))
    command("ingest", "--events", events, "--out", file)
    session = cw.Session.ingest(conversation(), name="chat", source=str(events))
    session.save(ours)
    assert ours.read_bytes() == file.read_bytes() == session.to_bytes() == cw.Session.load(file).to_bytes()
    for phase in ("route", "call", "interpret", "answer"):
        for budget in (40, 400, 4000):
            flags = ("--session", file, "--phase", phase, "--query", "disk", "--budget", budget)
            pack = session.build(phase, "disk", budget=budget)
            assert str(pack) == command("replay", *flags)
            assert document("stats", json.dumps(pack.stats, indent=2, ensure_ascii=False)) == command("stats", *flags, "--format", "json")
            assert f"{phase} prompt: {pack.ledger}" == command("stats", *flags)
            assert pack.tokens == cw.count_tokens(pack.prompt) <= budget
    handle = session.artifacts[0].handle
    for selector in ("head:80", "lines:-3..", "grep:ERROR", "sample:4"):
        assert session.view(handle, selector).text + "\n" == command("view", "--session", file, handle, selector)
    for form in ("openai", "anthropic", "gemini"):
        assert session.export(form) == command("export", "--session", file, "--to", form)


def test_a_manager_gives_what_its_store_gives(command, tmp_path):
    store = tmp_path / "chat.db"
    manager = cw.ContextManager(store)
    assert manager.ingest_conversation(conversation()) == len(manager) == 4
    pack = manager.build("answer", "disk", budget=500)
    assert pack.prompt == command("replay", "--session", store, "--query", "disk", "--budget", 500)
    assert cw.Session.load(store).build("answer", "disk", budget=500).prompt == pack.prompt


@pytest.mark.parametrize("engine", ["default", "bm25"])
def test_measures(engine, command):
    folder = HOUSEHOLD.parent
    flags = ("--catalog", HOUSEHOLD, "--queries", folder / "queries.jsonl", "--engine", engine)
    theirs = json.loads(command("bench", "eval", *flags, "--format", "json"))["evaluations"][0]
    ours = cw.evaluate(HOUSEHOLD, folder / "queries.jsonl", engine=engine)
    assert (ours.facts, ours.ranks) == (theirs["facts"], theirs["ranks"])
    assert command("bench", "eval", *flags) == f"configuration: {engine}\n{ours}"
    assert ours.measures["recall@5"] == theirs["facts"]["measures"]["recall@5"]["mean"]
    low, high = ours.intervals["recall@5"]
    assert low <= ours.measures["recall@5"] <= high


def test_messages(command, tmp_path):
    """An exception carries the text that the command prints."""
    broken, wrong = tmp_path / "broken.json", tmp_path / "wrong.toml"
    broken.write_text('{"tools": [{"name": 7}]}')
    wrong.write_text("top_k = 0\n")
    newer = tmp_path / "newer.session"
    newer.write_text('{"format": "contextweaver session", "schema": 99}')
    twice = tmp_path / "twice.json"
    twice.write_text('[{"name": "a", "description": "b"}, {"name": "a", "description": "b"}]')
    house = ("route", "--catalog", HOUSEHOLD)
    cases = [
        (cw.CatalogError, lambda: cw.Router(tmp_path / "none.json"), ("route", "--catalog", tmp_path / "none.json", "x")),
        (cw.CatalogError, lambda: cw.Router(broken), ("route", "--catalog", broken, "x")),
        (cw.CatalogError, lambda: cw.Router(twice), ("route", "--catalog", twice, "x")),
        (cw.ConfigError, lambda: cw.Router(HOUSEHOLD, config=tmp_path / "no.toml"), (*house, "--config", tmp_path / "no.toml", "x")),
        (cw.RouteError, lambda: cw.Router(HOUSEHOLD).browse("/nowhere"), (*house, "--path", "/nowhere")),
        (cw.RouteError, lambda: cw.Router.load(broken, HOUSEHOLD), (*house, "--index", broken, "x")),
        (cw.SessionError, lambda: cw.Session.load(newer), ("stats", "--session", newer)),
        (cw.SessionError, lambda: cw.Session.load(tmp_path / "no"), ("stats", "--session", tmp_path / "no")),
        (cw.EvaluationError, lambda: cw.evaluate(HOUSEHOLD, broken),
         ("bench", "eval", "--catalog", HOUSEHOLD, "--queries", broken)),
    ]
    for kind, ours, theirs in cases:
        with pytest.raises(kind) as raised:
            ours()
        assert str(raised.value) == command(*theirs), theirs
        assert issubclass(kind, cw.ContextweaverError)
    # The command names its flags.
    for ours, what, *theirs in [
        ({"exclude": ["y"]}, "no item has the id `y`", "--exclude", "y"),
        ({"namespaces": ["map"]}, "`map`", "--namespace", "map"),
    ]:
        with pytest.raises(cw.RouteError) as raised:
            cw.Router(HOUSEHOLD).route("x", **ours)
        assert what in str(raised.value)
        assert command(*house, *theirs, "x").startswith(f"{theirs[0]}: ")
    # The command adds another command, which a program has no use for.
    with pytest.raises(cw.SessionError) as raised:
        cw.Session.load(broken)
    said = command("stats", "--session", broken)
    assert said.startswith(f"{raised.value}; ") and "contextweaver ingest --events" in said


def test_the_collections_are_there():
    assert {"household", "workbench", "everyday"} <= {folder.name for folder in COLLECTIONS}
    assert (ROOT / "Cargo.toml").is_file()


@pytest.mark.parametrize("audience", ["agent", "advisor"])
def test_hand_overs(audience, command, tmp_path):
    log, session, next = ROOT / "scenarios/context/outage.jsonl", tmp_path / "a.session", tmp_path / "next.session"
    command("ingest", "--events", log, "--out", session)
    for budget in (60, 600):
        ask = ("handoff", "--session", session, "--for", audience, "--query", "the fix", "--budget", budget)
        options = dict(budget=budget, audience=audience)
        pack = cw.Session.load(session).handoff("the fix", **options)
        assert pack.text + "\n" == command(*ask, "--out", next)
        assert document("handoff", pack.to_json(indented=True)) == command(*ask, "--format", "json")
        assert pack.session().to_bytes() == next.read_bytes()
        assert pack.tokens <= budget and pack.text.startswith("[QUESTION]") == (audience == "advisor")
        assert cw.Session.load(session).manager().handoff("the fix", **options).text == pack.text
    assert cw.Session.load(session).handoff("the fix").text == cw.Session.load(session).handoff("the fix", audience="agent").text


@pytest.fixture
def sessions(command, tmp_path):
    """Two sessions that differ in a fact, as files."""
    paths = []
    for name, log, region in [("first", "outage", "eu-west-1"), ("second", "refund", "us-east-1")]:
        facts, session = tmp_path / f"{name}.json", tmp_path / f"{name}.session"
        facts.write_text(json.dumps({"region": region, "team lead": "Ines"}))
        command("ingest", "--events", ROOT / f"scenarios/context/{log}.jsonl", "--facts", facts, "--out", session)
        paths.append(session)
    return paths


def test_memories(sessions, command, tmp_path):
    theirs, ours = tmp_path / "theirs.json", tmp_path / "ours.json"
    first, second = sessions
    as_of = ("--as-of", "2026-11-24")
    days = {"first": "2026-11-20", "second": datetime.date(2026, 11, 23)}
    dated = [f"{first}@2026-11-20", f"{second}@2026-11-23"]
    both = {"first": first, "second": cw.Session.load(second)}
    cases = [
        (lambda: cw.consolidate(sessions), sessions),
        (lambda: cw.consolidate(both), sessions),
        (lambda: cw.consolidate(both, days=days, as_of="2026-11-24"), [*dated, *as_of]),
        (lambda: cw.consolidate(both, days=days, as_of="2026-11-24", min_sessions=1, similarity=90, forget_after=2),
         [*dated, *as_of, "--min-sessions", 1, "--similarity", 90, "--forget-after", 2]),
    ]
    for make, arguments in cases:
        shown = command("consolidate", *arguments, "--out", theirs, "--format", "json")
        memory = make()
        memory.save(ours)
        assert ours.read_bytes() == theirs.read_bytes()
        assert document("consolidate", memory.to_json(indented=True)) == shown
        again = pickle.loads(pickle.dumps(memory))
        assert again.to_json() == memory.to_json() == cw.Memory.load(theirs).to_json()
    # Steps give what all at once gives, and the file is a memory of both.
    step = cw.consolidate([second], memories=[cw.consolidate([first])])
    command("consolidate", second, first, "--out", theirs)
    step.save(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    assert cw.consolidate([], memories=[theirs, step]).to_json() == step.to_json()
    memory = cw.consolidate(both, days=days)
    assert ("region", "us-east-1 (before: eu-west-1)") in memory.facts and ("team lead", "Ines") in memory.facts
    assert [fact["key"] for fact in memory.conflicts] == ["region"] and memory.episodes
    assert [session["name"] for session in memory.sessions] and repr(memory) == "<Memory of 2 sessions>"
    manager = cw.ContextManager(memory=memory)
    manager.ingest("u1", "user_turn", "Which region?")
    assert "- memory:region: region: us-east-1 (before: eu-west-1)" in manager.build("answer", "region").prompt
    with pytest.raises(cw.InputError) as refused:
        cw.consolidate([first], min_sessions=0)
    assert str(refused.value) == command("consolidate", first, "--out", theirs, "--min-sessions", 0)
