"""The texts of the conversation one below the other: the newest that fit the budget, or with `--whole` all of them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import context

import tiktoken


def whole(conversation, query, budget):
    return "\n".join(text for _, text in context.shown(conversation))


def newest(conversation, query, budget):
    encoding, kept = tiktoken.get_encoding("cl100k_base"), []
    for _, text in reversed(context.shown(conversation)):
        longer = [text, *kept]
        if len(encoding.encode("\n".join(longer), disallowed_special=())) > budget:
            break
        kept = longer
    return "\n".join(kept)


context.serve("tiktoken", whole if "--whole" in sys.argv else newest)
