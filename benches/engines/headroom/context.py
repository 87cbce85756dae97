"""headroom: its compression of messages as its manual begins, without its language model, which would be downloaded.

It knows no budget: how much is left is its own decision. Of a result alone nothing is protected for being recent.
"""

import os
import sys
from pathlib import Path

os.environ.update(HEADROOM_OFFLINE="1", HF_HUB_OFFLINE="1", LITELLM_LOCAL_MODEL_COST_MAP="True", HOME=os.getcwd())
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import context

from headroom import compress

# Its tokens are those of cl100k_base.
MODEL = "gpt-4"


def compressed(messages, **options):
    messages = compress(messages, model=MODEL, kompress_model="disabled", **options).messages
    return [message["content"] or "" for message in messages]


def compile(conversation, query, budget):
    messages, calls = [], []
    for role, text in context.shown(conversation):
        if role == "assistant":
            calls = [f"call{len(messages)}"]
            call = {"id": calls[0], "type": "function", "function": {"name": "tool", "arguments": "{}"}}
            messages.append({"role": role, "content": text, "tool_calls": [call]})
        elif role == "tool":
            messages.append({"role": role, "tool_call_id": (calls or ["call"])[0], "content": text})
        else:
            messages.append({"role": role, "content": text})
    return "\n".join(compressed(messages, model_limit=budget))


def compact(result, cap):
    call = {"id": "call", "type": "function", "function": {"name": "tool", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Summarize the result."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call", "content": result},
    ]
    return compressed(messages, protect_recent=0)[-1]


context.serve("headroom-ai", compile, compact)
