"""Google ADK: a toolset of many tools, of which each turn sees those that fit what the user said."""

import asyncio

import contextweaver_rs as cw
import home
from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types


class Shortlist(BaseToolset):
    """Offers the `top_k` tools that fit what the user said last."""

    def __init__(self, tools, top_k=5):
        super().__init__()
        self.by_name, self.top_k = {tool.name: tool for tool in tools}, top_k
        self.router = cw.Router([tool._get_declaration() for tool in tools])

    async def get_tools(self, readonly_context=None):
        said = readonly_context.user_content if readonly_context else None
        question = " ".join(part.text for part in said.parts or () if part.text) if said else ""
        # A picture alone, or the answers of functions, say nothing to go by.
        if not question.strip():
            return list(self.by_name.values())
        return [self.by_name[choice.name] for choice in self.router.route(question, self.top_k)]


class Scripted(BaseLlm):
    """The model that follows the script."""

    script: home.Script

    async def generate_content_async(self, llm_request, stream=False):
        step = self.script.turn(list(llm_request.tools_dict))
        part = types.Part(text=step) if isinstance(step, str) else types.Part.from_function_call(name=step[0], args=step[1])
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class HomeTool(BaseTool):
    """A tool of the home as ADK holds it."""

    def __init__(self, definition):
        super().__init__(name=definition["name"], description=definition["description"])
        self.schema = definition["inputSchema"]

    def _get_declaration(self):
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=self.schema)

    async def run_async(self, *, args, tool_context):
        return home.run(self.name, **args)


def test():
    script, shortlist = home.lights(), Shortlist([HomeTool(definition) for definition in home.TOOLS])
    agent = Agent(name="home", model=Scripted(model="scripted", script=script), tools=[shortlist])
    runner = InMemoryRunner(agent=agent, app_name="home")

    async def ask():
        session = await runner.session_service.create_session(app_name="home", user_id="me")
        said = types.Content(role="user", parts=[types.Part(text=home.QUESTION)])
        events = [event async for event in runner.run_async(user_id="me", session_id=session.id, new_message=said)]
        return events[-1].content.parts[0].text

    script.check(asyncio.run(ask()))


if __name__ == "__main__":
    test()
