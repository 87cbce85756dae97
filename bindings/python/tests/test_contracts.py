"""What is written for weaver-spec is what the package of its contracts takes, and what that package makes is read here."""

import dataclasses
import json
from datetime import datetime, timezone

import contextweaver_rs as cw
import pytest
import weaver_contracts as contracts
from conftest import HOUSEHOLD

MOMENT = "2026-11-27T10:00:00Z"
NOW = datetime(2026, 11, 27, 10, tzinfo=timezone.utc)


def card_of(members):
    """A card of the contract: it refuses members that it does not know, and empty ones that it requires."""
    return contracts.ChoiceCard(**{**members, "items": [contracts.SelectableItem(**item) for item in members["items"]]})


def decision_of(members):
    cards = [card_of(card) for card in members["choice_cards"]]
    return contracts.RoutingDecision(**{**members, "choice_cards": cards, "timestamp": datetime.fromisoformat(members["timestamp"])})


def frame_of(members):
    return contracts.Frame(**{**members, "created_at": datetime.fromisoformat(members["created_at"])})


def written(value):
    """What a program sends of an object of the contract: JSON, with null for what is not there."""
    return json.loads(json.dumps(dataclasses.asdict(value), default=datetime.isoformat))


def test_choice_cards():
    catalog = cw.Catalog.from_path(HOUSEHOLD)
    cards = [card_of(card) for card in catalog.as_tools("weaver-spec")]
    assert [item.id for card in cards for item in card.items] == catalog.ids and all(len(card.items) <= 20 for card in cards)
    again = cw.Catalog([written(card) for card in cards])
    assert [(tool.id, tool.name, tool.description) for tool in again] == [(tool.id, tool.name, tool.description) for tool in catalog]
    (card,) = cw.Router(catalog).route("turn on the lights", top_k=3).as_tools("weaver-spec")
    assert len(card_of(card).items) == 3
    # The contract requires a description; a tool may have none.
    (card,) = cw.Catalog([{"name": "ping", "inputSchema": {"type": "object"}}]).as_tools("weaver-spec")
    assert card_of(card).items[0].description == "ping"


def test_a_routing_decision(command, tmp_path):
    said = command("route", "--catalog", HOUSEHOLD, "--as", "weaver-spec", "--decided-at", MOMENT, "turn on the lights")
    decision = decision_of(json.loads(said))
    assert decision.timestamp == NOW and decision.context_summary == "turn on the lights" and decision.selected_item_id is None
    ids = [item.id for card in decision.choice_cards for item in card.items]
    assert cw.Catalog(written(decision)).ids == sorted(ids)
    (tmp_path / "decision.json").write_text(json.dumps(written(decision)))
    assert ids[0] in command("route", "--catalog", tmp_path / "decision.json", "turn on the lights")


@pytest.mark.parametrize("result", ["INFO request done\n" * 5000 + "ERROR disk full\n", "short", "", {"rows": [1, 2]}])
def test_a_frame(result):
    envelope = cw.Firewall().compact(result, call="c1")
    members = envelope.to_frame(frame_id="f1", capability_id="logs:read#00000000", created_at=MOMENT)
    frame = frame_of(members)
    assert frame.created_at == NOW and frame.handle_refs == [kept.handle for kept in envelope.artifacts]
    manager = cw.ContextManager()
    manager.ingest("c1", "tool_call", "read()")
    manager.ingest_envelope("c1", written(frame))
    assert envelope.summary in manager.build().prompt


def test_what_others_make():
    """The objects of the contract with the members that it requires and no more; the others are null."""
    item = contracts.SelectableItem(id="pay.refund", label="Refund", description="Give the money back.")
    decision = contracts.RoutingDecision(id="d", choice_cards=[contracts.ChoiceCard(id="c", items=[item])], timestamp=NOW)
    capability = contracts.Capability(id="pay.refund", name="Refund", version="1.2.0", description="Give the money back.")
    for source in (written(decision), [written(item)], [written(capability)]):
        (tool,) = cw.Catalog(source)
        assert tool.name == "pay.refund" and "Give the money back." in tool.description, source
    frame = contracts.Frame(frame_id="f", capability_id="pay.refund", summary="It was paid back.", created_at=NOW)
    manager = cw.ContextManager()
    manager.ingest("c1", "tool_call", "refund()")
    manager.ingest_envelope("c1", written(frame))
    assert "It was paid back." in manager.build().prompt
