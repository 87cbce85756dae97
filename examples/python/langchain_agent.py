"""LangChain: a middleware that offers the model the tools that fit the conversation, out of those that the agent holds."""

import contextweaver_rs as cw
import home
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool


class Shortlist(AgentMiddleware):
    """Offers at most `top_k` tools, and those of `always`."""

    def __init__(self, tools, top_k=5, always=()):
        super().__init__()
        self.router = cw.Router([convert_to_openai_tool(tool) for tool in tools])
        self.top_k, self.always = top_k, set(always)

    def fitting(self, request):
        """The request with the tools that fit what was asked last."""
        asked = [message.text for message in request.messages if isinstance(message, HumanMessage) and message.text.strip()]
        if not asked:
            return request
        names = self.always | {choice.name for choice in self.router.route(asked[-1], self.top_k)}
        # Tools of the provider itself are mappings, and stay.
        return request.override(tools=[tool for tool in request.tools if getattr(tool, "name", None) in names or isinstance(tool, dict)])

    def wrap_model_call(self, request, handler):
        return handler(self.fitting(request))

    async def awrap_model_call(self, request, handler):
        return await handler(self.fitting(request))


class Scripted(BaseChatModel):
    """The model that follows the script."""

    script: home.Script
    names: list = []
    model_config = {"arbitrary_types_allowed": True}

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return Scripted(script=self.script, names=[tool.name for tool in tools])

    def _generate(self, messages, stop=None, run_manager=None, **options):
        step = self.script.turn(self.names)
        calls = [] if isinstance(step, str) else [{"name": step[0], "args": step[1], "id": "1"}]
        message = AIMessage(content=step if isinstance(step, str) else "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def tool(definition):
    """A tool of the home as LangChain holds it."""
    return StructuredTool.from_function(
        lambda **arguments: home.run(definition["name"], **arguments),
        name=definition["name"], description=definition["description"], args_schema=definition["inputSchema"],
    )


def test():
    tools, script = [tool(definition) for definition in home.TOOLS], home.lights()
    agent = create_agent(Scripted(script=script), tools, middleware=[Shortlist(tools)])
    state = agent.invoke({"messages": [HumanMessage(home.QUESTION)]})
    script.check(state["messages"][-1].text)


if __name__ == "__main__":
    test()
