"""The Python package contextweaver: its context manager and its firewall as they come, with an exact count of tokens."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import context

from contextweaver import compact_tool_result
from contextweaver.context.manager import ContextManager
from contextweaver.protocols import TiktokenEstimator
from contextweaver.tokens import count
from contextweaver.types import ContextItem, ItemKind, Phase, Sensitivity


def compile(conversation, query, budget):
    manager = ContextManager(estimator=TiktokenEstimator("cl100k_base"))
    for fact in conversation["facts"]:
        manager.add_fact_sync(fact["key"], fact["value"])
    for episode in conversation["episodes"]:
        manager.add_episode_sync(episode["id"], episode["summary"])
    for event in conversation["events"]:
        sensitivity = Sensitivity.restricted if event.get("hidden") else Sensitivity.public
        kind, parent = ItemKind(event["kind"]), event.get("parent")
        manager.ingest_sync(ContextItem(event["id"], kind, event["text"], sensitivity=sensitivity, parent_id=parent))
    return manager.build_sync(phase=Phase(conversation["phase"]), query=query, budget_tokens=budget).prompt


def compact(result, cap):
    shortened = compact_tool_result(result, threshold_chars=0, budget=cap, strategy="text")
    # Facts stand apart from the summary; as many as fit come after it.
    text = shortened.summary
    for fact in shortened.facts:
        longer = f"{text}\n{fact}"
        if count(longer) > cap:
            break
        text = longer
    return text


context.serve("contextweaver", compile, compact)
