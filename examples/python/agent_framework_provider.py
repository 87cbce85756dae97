"""Microsoft Agent Framework: a context provider that offers each run the tools that fit what the user says."""

import asyncio

import contextweaver_rs as cw
import home
from agent_framework import Agent, ContextProvider, FunctionTool
from agent_framework_openai import OpenAIChatCompletionClient


class Shortlist(ContextProvider):
    """Holds all tools in place of the agent, and gives a run the `top_k` that fit its messages."""

    def __init__(self, tools, top_k=5):
        super().__init__("shortlist")
        self.tools, self.top_k = {tool.name: tool for tool in tools}, top_k
        self.router = cw.Router([
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters()} for tool in tools
        ])

    async def before_run(self, *, agent, session, context, state):
        asked = " ".join(message.text for message in context.input_messages)
        context.extend_tools(self.source_id, [self.tools[choice.name] for choice in self.router.route(asked, self.top_k)])


def tool(definition):
    """A tool of the home as the framework holds it."""
    run = lambda **arguments: home.run(definition["name"], **arguments)
    return FunctionTool(
        name=definition["name"], description=definition["description"], func=run, input_model=definition["inputSchema"]
    )


async def ask(address, question):
    """What an agent answers whose tools the provider holds."""
    client = OpenAIChatCompletionClient("scripted", api_key="none", base_url=f"{address}/v1")
    agent = Agent(client, context_providers=[Shortlist([tool(definition) for definition in home.TOOLS])])
    return (await agent.run(question)).text


def test():
    script = home.lights()
    with home.serve(script) as address:
        script.check(asyncio.run(ask(address, home.QUESTION)))


if __name__ == "__main__":
    test()
