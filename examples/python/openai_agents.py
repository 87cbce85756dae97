"""OpenAI Agents SDK: an agent that holds all tools, and a copy of it for each question with those that fit."""

import asyncio

import contextweaver_rs as cw
import home
from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI


class Shortlist:
    """Chooses among the tools of an agent."""

    def __init__(self, agent, top_k=5):
        self.agent, self.top_k = agent, top_k
        self.functions = {tool.name: tool for tool in agent.tools if isinstance(tool, FunctionTool)}
        self.router = cw.Router([
            {"name": tool.name, "description": tool.description, "inputSchema": tool.params_json_schema}
            for tool in self.functions.values()
        ])

    def agent_for(self, question):
        """The agent with the tools that fit, and those that are not functions (search, code) as they are."""
        fitting = [self.functions[choice.name] for choice in self.router.route(question, self.top_k)]
        others = [tool for tool in self.agent.tools if not isinstance(tool, FunctionTool)]
        return self.agent.clone(tools=[*others, *fitting])


def tool(definition):
    """A tool of the home as the SDK holds it."""

    async def call(context, arguments):
        import json

        return home.run(definition["name"], **json.loads(arguments))

    return FunctionTool(
        name=definition["name"], description=definition["description"], params_json_schema=definition["inputSchema"],
        on_invoke_tool=call, strict_json_schema=False,
    )


def test():
    set_tracing_disabled(True)
    script = home.lights()
    with home.serve(script) as address:
        client = AsyncOpenAI(base_url=address, api_key="none")
        model = OpenAIChatCompletionsModel(model="gpt-5", openai_client=client)
        agent = Agent(name="home", model=model, tools=[tool(definition) for definition in home.TOOLS])
        shortlist = Shortlist(agent)
        result = asyncio.run(Runner.run(shortlist.agent_for(home.QUESTION), home.QUESTION))
    script.check(result.final_output)


if __name__ == "__main__":
    test()
