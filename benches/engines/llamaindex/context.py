"""LlamaIndex: the newest messages that fit, by ChatMemoryBuffer with an exact count of tokens."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import context

import tiktoken
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer


def compile(conversation, query, budget):
    encoding = tiktoken.get_encoding("cl100k_base")
    memory = ChatMemoryBuffer.from_defaults(
        token_limit=budget, tokenizer_fn=lambda text: encoding.encode(text, disallowed_special=())
    )
    memory.put_messages([ChatMessage(role=role, content=text) for role, text in context.shown(conversation)])
    return "\n".join(message.content for message in memory.get())


context.serve("llama-index-core", compile)
