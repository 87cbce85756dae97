"""LlamaIndex: a tool retriever for its agents, without embeddings."""

import asyncio

import contextweaver_rs as cw
import home
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.objects import ObjectRetriever
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool, ToolMetadata
from pydantic import create_model


class ToolRetriever(ObjectRetriever):
    """Gives back the tools that fit a query, best first."""

    def __init__(self, tools, top_k=5):
        self.router = cw.Router([tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools])
        self.by_name, self.top_k = {tool.metadata.name: tool for tool in tools}, top_k

    def retrieve(self, query):
        text = query.query_str if isinstance(query, QueryBundle) else query
        return [self.by_name[choice.name] for choice in self.router.route(text, self.top_k)]

    async def aretrieve(self, query):
        return self.retrieve(query)


class Scripted(MockFunctionCallingLLM):
    """The model that follows the script."""

    script: home.Script = None

    async def achat_with_tools(self, tools, **options):
        return self.said(tools)

    async def astream_chat_with_tools(self, tools, **options):
        async def once():
            yield self.said(tools)

        return once()

    def said(self, tools):
        from llama_index.core.base.llms.types import ChatResponse

        step = self.script.turn([tool.metadata.name for tool in tools])
        block = TextBlock(text=step) if isinstance(step, str) else ToolCallBlock(
            tool_call_id="1", tool_name=step[0], tool_kwargs=step[1])
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, blocks=[block]), delta="")


def tool(definition):
    """A tool of the home as LlamaIndex holds it."""
    fields = {name: (object, None) for name in definition["inputSchema"].get("properties", {})}
    metadata = ToolMetadata(
        name=definition["name"], description=definition["description"], fn_schema=create_model(definition["name"], **fields))
    return FunctionTool(fn=lambda **arguments: home.run(definition["name"], **arguments), metadata=metadata)


def test():
    script, tools = home.lights(), [tool(definition) for definition in home.TOOLS]
    agent = FunctionAgent(llm=Scripted(script=script), tool_retriever=ToolRetriever(tools))

    async def ask():
        return str(await agent.run(user_msg=home.QUESTION))

    script.check(asyncio.run(ask()))


if __name__ == "__main__":
    test()
