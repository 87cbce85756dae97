"""Pydantic AI: a toolset around others, of which each run sees the tools that fit its prompt."""

from dataclasses import dataclass, field

import contextweaver_rs as cw
import home
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset


@dataclass
class Shortlist(WrapperToolset):
    """Offers the `top_k` tools of the wrapped toolset that fit the prompt of the run."""

    top_k: int = 5
    routers: dict = field(default_factory=dict, repr=False)

    async def get_tools(self, ctx):
        tools = await super().get_tools(ctx)
        names = frozenset(tools)
        if names not in self.routers:
            definitions = [tool.tool_def for tool in tools.values()]
            self.routers[names] = cw.Router([
                {"name": one.name, "description": one.description, "inputSchema": one.parameters_json_schema}
                for one in definitions
            ])
        prompt = ctx.prompt if isinstance(ctx.prompt, str) else " ".join(part for part in ctx.prompt or () if isinstance(part, str))
        # A run that goes on from earlier messages has no prompt.
        if not prompt.strip():
            return tools
        return {choice.name: tools[choice.name] for choice in self.routers[names].route(prompt, self.top_k)}


def scripted(script):
    """The model that follows the script."""

    def turn(messages, info):
        step = script.turn([tool.name for tool in info.function_tools])
        return ModelResponse([TextPart(step) if isinstance(step, str) else ToolCallPart(*step)])

    return FunctionModel(turn)


def tool(definition):
    """A tool of the home as Pydantic AI holds it."""
    run = lambda **arguments: home.run(definition["name"], **arguments)
    return Tool.from_schema(run, definition["name"], definition["description"], definition["inputSchema"])


def test():
    script, tools = home.lights(), FunctionToolset([tool(definition) for definition in home.TOOLS])
    agent = Agent(scripted(script), toolsets=[Shortlist(tools)])
    script.check(agent.run_sync(home.QUESTION).output)


if __name__ == "__main__":
    test()
