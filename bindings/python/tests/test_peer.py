"""The shim for users of the Python package contextweaver. scripts/python-test runs it with that package installed too."""

import json
import os
import subprocess

import contextweaver_rs as cw
import pytest
from contextweaver_rs import peer
from conftest import ROOT

ITEMS = [
    {"id": "billing.invoices.find", "kind": "tool", "name": "invoices_find", "description": "Find invoices of a month", "tags": ["billing"],
     "namespace": "billing", "args_schema": {"type": "object", "properties": {"month": {"type": "string"}}}, "depends_on": ["billing.login"]},
    {"id": "billing.login", "kind": "tool", "name": "login", "description": "Open a session", "namespace": "billing", "args_schema": {}},
    {"id": "close", "kind": "flow", "name": "close_month", "description": "Close the books of a month", "namespace": "books"},
]


@pytest.mark.parametrize("name", ["catalog.json", "catalog.yaml"])
def test_a_catalog(tmp_path, name):
    (tmp_path / name).write_text(json.dumps(ITEMS))
    loaded = peer.load_catalog(tmp_path / name)
    assert set(loaded.ids) == {item["id"] for item in ITEMS} and set(loaded.ids.values()) == set(loaded.value.ids)
    assert cw.Router(loaded.value).route("find the invoices of May").ids[0] == loaded.ids["billing.invoices.find"]
    assert loaded.ignored == [] and "names old ids: 1;" in loaded.notes and "flows that became tools here: 1" in loaded.notes


def test_a_session(tmp_path):
    events = [{"id": "u", "kind": "user_turn", "text": "Why?"}, {"id": "c", "kind": "tool_call", "text": "df()"},
              {"id": "r", "kind": "tool_result", "text": "full", "parent_id": "c"}]
    session = {"event_count": 3, "events": events, "facts": {"tz": "UTC"}, "episodes": [], "artifacts": {"artifact:r": {"media_type": "text/plain"}}}
    (tmp_path / "session.json").write_text(json.dumps(session))
    loaded = peer.load_session(tmp_path / "session.json")
    assert "full" in loaded.value.build("answer", "why").prompt and "not in the file: 1;" in loaded.notes
    (tmp_path / "events.jsonl").write_text('{"type": "user_turn", "text": "Why?"}\n{"type": "agent_msg", "text": "Full."}\n')
    assert len(peer.load_session(tmp_path / "events.jsonl").value.events) == 2


def test_a_profile():
    loaded = peer.load_config({
        "mode": "seeded", "seed": 7, "budget": {"answer": 4000}, "routing": {"beam_width": 2, "top_k": 5, "max_children": 9, "confidence_gap": 0.2},
        "policy": {"max_items_per_kind": {"user_turn": 5, "policy": 9}, "sensitivity_floor": "restricted", "extra": {"a": 1}},
        "scoring": {"recency_weight": 0.5, "dedup_threshold": 0.9},
    })
    assert loaded.value == {
        "routing": {"top_k": 5, "tree": {"max_children": 9}},
        "context": {"budgets": {"answer": 4000}, "policy": {"sensitivity_floor": "restricted", "max_items_per_kind": 9}, "dedup": {"threshold": 0.9}},
    }
    assert loaded.ignored == ["policy.extra", "routing.beam_width", "routing.confidence_gap", "scoring.recency_weight"]
    assert "there is no seed" in loaded.notes and "a share of the best score" in loaded.notes
    assert cw.Router(ITEMS, config=loaded.value["routing"]).config["top_k"] == 5
    cw.ContextManager(config=loaded.value["context"])


def test_a_gateway(tmp_path, command):
    loaded = peer.load_config({
        "mode": "gateway", "top_k": 5, "beam_width": 3, "host": "127.0.0.1", "port": 8765, "retry": {"max_attempts": 2, "jitter": 0.1, "unheard": 1},
        "upstreams": {"a": {"type": "stdio", "command": "a-server", "args": ["-y"], "timeout": 30}, "b": {"type": "http", "url": "http://127.0.0.1:1/mcp", "colour": "red"}},
        "startup": {"mode": "degraded", "min_healthy_upstreams": 1}, "cache": {"ttl_seconds": 60}, "redact": True,
    })
    assert {"retry.unheard", "upstreams.b.colour"} <= set(loaded.ignored), loaded.ignored
    assert "`beam_width`: every tool is scored" in loaded.notes
    kept = loaded.value["gateway"]
    assert kept["http"] == {"listen": "127.0.0.1:8765"} and kept["upstreams"]["a"]["command"] == "a-server"
    # The gateway takes what is left: only the servers, which are not there, are wrong.
    (tmp_path / "gateway.yaml").write_text(json.dumps(kept))
    said = command("mcp", "doctor", "--config", tmp_path / "gateway.yaml")
    assert "unknown" not in said and "a-server" in said, said


@pytest.mark.parametrize("host, port, listen", [
    ("localhost", 9000, "127.0.0.1:9000"), ("::1", 9000, "[::1]:9000"), ("[::1]", None, "[::1]:8080"), (None, 9000, "127.0.0.1:9000"),
    ("0.0.0.0", 9000, "0.0.0.0:9000"),
])
def test_a_gateway_listens_where_it_can(host, port, listen):
    assert peer.load_config({"upstreams": {}, "host": host, "port": port}).value["gateway"]["http"] == {"listen": listen}


def test_what_a_configuration_cannot_hold():
    with pytest.raises(cw.InputError, match="`host`: `box.local` is not an address"):
        peer.load_config({"upstreams": {}, "host": "box.local"})
    for key in ("budget", "policy", "scoring", "routing"):
        for value in ([1], "x"):
            with pytest.raises(cw.InputError, match=f"`{key}`: expected an object"):
                peer.load_config({key: value})


def test_a_rule_is_not_made_wider():
    rule = {"action": "allow", "tool": "billing*", "read_only": True}
    with pytest.raises(cw.InputError, match=r"policy\.rules\[0\]\.read_only"):
        peer.load_config({"catalog": "tools.json", "policy": {"default": "deny", "rules": [rule]}})


@pytest.mark.parametrize("text", ["{", "[]", '{"colour": "red"}'])
def test_what_is_no_configuration(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(cw.InputError):
        peer.load_config(tmp_path / "config.json")


def test_the_files_of_the_real_package(tmp_path):
    """Its own writers, in an environment of their own that scripts/python-test names."""
    python = os.environ.get("PEER_PYTHON")
    if not python:
        pytest.skip("scripts/python-test sets PEER_PYTHON")
    program = (
        "import json, sys, pathlib\n"
        "from contextweaver.profiles import ProfileConfig\n"
        "from contextweaver.routing.catalog import generate_sample_catalog\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "items = generate_sample_catalog(n=40)\n"
        "items = [item if isinstance(item, dict) else item.to_dict() for item in items]\n"
        "(folder / 'catalog.json').write_text(json.dumps(items))\n"
        "[(folder / f'{name}.json').write_text(json.dumps(ProfileConfig.from_preset(name).to_dict())) for name in ('fast', 'balanced', 'accurate')]\n"
    )
    subprocess.run([python, "-c", program, str(tmp_path)], check=True)
    (tmp_path / "events.jsonl").write_text('{"type": "user_turn", "text": "Why?"}\n{"type": "tool_call", "id": "c", "text": "df()"}\n'
                                           + json.dumps({"type": "tool_result", "parent_id": "c", "text": "x = 1\n" * 900}) + "\n")
    subprocess.run([python, "-m", "contextweaver", "ingest", "--events", tmp_path / "events.jsonl", "--out", tmp_path / "session.json"], check=True, stdout=subprocess.DEVNULL)
    catalog = peer.load_catalog(tmp_path / "catalog.json")
    assert len(catalog.value) == len(catalog.ids) == 40
    session = peer.load_session(tmp_path / "session.json")
    assert [event["kind"] for event in session.value.events] == ["user_turn", "tool_call", "tool_result"] and "not in the file: 1;" in session.notes
    for name in ("fast", "balanced", "accurate"):
        profile = peer.load_config(tmp_path / f"{name}.json")
        cw.Router(catalog.value, config=profile.value["routing"])
        cw.ContextManager(config=profile.value["context"])


def test_the_gateways_of_the_real_package(tmp_path, command):
    """What its own objects say of a gateway, which its own check finds in order, is a configuration that the gateway here takes."""
    python = os.environ.get("PEER_PYTHON")
    if not python:
        pytest.skip("scripts/python-test sets PEER_PYTHON")
    program = """
import json, sys, pathlib
from contextweaver.adapters.artifact_policy import ArtifactPolicy
from contextweaver.adapters.gateway_doctor import run_doctor
from contextweaver.adapters.gateway_presets import GATEWAY_PRESET_NAMES, GatewayPreset
from contextweaver.adapters.startup_policy import StartupPolicy
from contextweaver.adapters.upstream_config import UpstreamSpec
files = UpstreamSpec(name="files", command="files-server", args=("-y",), env={"LEVEL": "1"}, namespace="fs", include_tools=("read_*",))
docs = UpstreamSpec(name="docs", type="http", url="http://127.0.0.1:1/mcp", headers={"X-Team": "a"}, required=False, timeout=5)
for name in GATEWAY_PRESET_NAMES:
    blocks = {"startup": StartupPolicy(mode="strict"), "artifacts": ArtifactPolicy(max_bytes=1000, redact_secrets=True)}
    preset = GatewayPreset.from_preset(name).to_dict()
    config = {"mode": "gateway", "top_k": 5, "upstreams": {one.name: one.to_dict() for one in (files, docs)},
              **{key: block.to_dict() for key, block in blocks.items()},
              **{key: preset[key] for key in ("policy", "retry", "rate_limits", "cache")}}
    path = pathlib.Path(sys.argv[1]) / f"{name}.json"
    path.write_text(json.dumps(config))
    report = run_doctor(path)
    assert report.exit_code(strict=True) == 0, report.render_text()
    print(name)
"""
    names = subprocess.run([python, "-c", program, str(tmp_path)], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert len(names) == 3, names
    for name in names:
        loaded = peer.load_config(tmp_path / f"{name}.json")
        assert loaded.ignored == [], (name, loaded.ignored)
        # No end is a value there as here, and not what was left out.
        assert loaded.value["gateway"]["artifacts"]["ttl_seconds"] is None
        (tmp_path / "gateway.yaml").write_text(json.dumps(loaded.value["gateway"]))
        said = command("mcp", "doctor", "--config", tmp_path / "gateway.yaml")
        # Only its servers are wrong, which are not there.
        wrong = [line for line in said.splitlines() if line.startswith("error: ")]
        assert [line.split(": ")[1] for line in wrong] == ["upstreams.docs", "upstreams.files.command"], (name, said)


def test_the_program_of_the_page(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs/from-contextweaver-py.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "catalog.json").write_text(json.dumps(ITEMS))
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "from-contextweaver-py.md", "exec"), {})
    said = capsys.readouterr().out
    assert said.rstrip().endswith("['routing.beam_width']") and "billing:invoices_find#" in said, said
