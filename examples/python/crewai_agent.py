"""CrewAI: each task gets the tools that fit its description, out of all that the crew holds."""

import contextweaver_rs as cw
import home
from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import BaseTool
from pydantic import create_model


class Shortlist:
    """Chooses among tools."""

    def __init__(self, tools, top_k=5):
        self.by_name, self.top_k = {tool.name: tool for tool in tools}, top_k
        self.router = cw.Router([
            {"name": tool.name, "description": tool.description, "inputSchema": tool.args_schema.model_json_schema()}
            for tool in tools
        ])

    def __call__(self, text):
        """The tools that fit, best first."""
        return [self.by_name[choice.name] for choice in self.router.route(text, self.top_k)]


class Scripted(BaseLLM):
    """The model that follows the script."""

    script: home.Script

    def supports_function_calling(self):
        return True

    def call(self, messages, tools=None, callbacks=None, available_functions=None, **options):
        step = self.script.turn([tool["function"]["name"] for tool in tools or []])
        if isinstance(step, str):
            return step
        import json

        return [{"id": "1", "type": "function", "function": {"name": step[0], "arguments": json.dumps(step[1])}}]


class HomeTool(BaseTool):
    """A tool of the home as CrewAI holds it."""

    def _run(self, **arguments):
        return home.run(self.name, **{name: value for name, value in arguments.items() if value is not None})


def tool(definition):
    fields = {name: (object, None) for name in definition["inputSchema"].get("properties", {})}
    schema = create_model(definition["name"], **fields)
    return HomeTool(name=definition["name"], description=definition["description"], args_schema=schema)


def test():
    script, tools_for = home.lights(), Shortlist([tool(definition) for definition in home.TOOLS])
    agent = Agent(role="butler", goal="run the home", backstory="", llm=Scripted(model="scripted", script=script))
    task = Task(description=home.QUESTION, expected_output="what was done", agent=agent, tools=tools_for(home.QUESTION))
    script.check(Crew(agents=[agent], tasks=[task]).kickoff().raw)


if __name__ == "__main__":
    test()
