"""Agno: an agent whose tools are made for each run, out of many."""

import contextweaver_rs as cw
import home
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.function import Function


class Shortlist:
    """Chooses among functions."""

    def __init__(self, functions, top_k=5):
        self.by_name, self.top_k = {function.name: function for function in functions}, top_k
        self.router = cw.Router([
            {"name": one.name, "description": one.description, "inputSchema": one.parameters} for one in functions
        ])

    def __call__(self, run_context):
        """What Agno calls before a run: the functions that fit the question, which is in the state of the session."""
        question = run_context.session_state["question"]
        return [self.by_name[choice.name] for choice in self.router.route(question, self.top_k)]


def function(definition):
    """A tool of the home as Agno holds it."""
    return Function(
        name=definition["name"], description=definition["description"], parameters=definition["inputSchema"],
        entrypoint=lambda **arguments: home.run(definition["name"], **arguments), skip_entrypoint_processing=True,
    )


def test():
    script = home.lights()
    with home.serve(script) as address:
        model = OpenAIChat(id="gpt-5", base_url=address, api_key="none")
        shortlist = Shortlist([function(definition) for definition in home.TOOLS])
        agent = Agent(model=model, tools=shortlist, cache_callables=False, telemetry=False)
        answer = agent.run(home.QUESTION, session_state={"question": home.QUESTION}).content
    script.check(answer)


if __name__ == "__main__":
    test()
