"""smolagents: an agent made for each question with the tools that fit it."""

import contextweaver_rs as cw
import home
from smolagents import Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model


class Shortlist:
    """Chooses among tools."""

    def __init__(self, tools, top_k=5):
        self.by_name, self.top_k = {tool.name: tool for tool in tools}, top_k
        self.router = cw.Router([
            {"name": tool.name, "description": tool.description,
             "inputSchema": {"type": "object", "properties": tool.inputs}} for tool in tools
        ])

    def __call__(self, question):
        """The tools that fit, best first."""
        return [self.by_name[choice.name] for choice in self.router.route(question, self.top_k)]


class Scripted(Model):
    """The model that follows the script."""

    def __init__(self, script):
        super().__init__(model_id="scripted")
        self.script = script

    def generate(self, messages, tools_to_call_from=None, **options):
        step = self.script.turn([tool.name for tool in tools_to_call_from if tool.name != "final_answer"])
        name, arguments = ("final_answer", {"answer": step}) if isinstance(step, str) else step
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[ChatMessageToolCall(function=function, id="1", type="function")])


def tool(definition):
    """A tool of the home as smolagents holds it."""
    types = {"string", "boolean", "integer", "number", "array", "object"}
    inputs = {
        name: {"type": one["type"] if one.get("type") in types else "any",
               "description": one.get("description", name), "nullable": True}
        for name, one in definition["inputSchema"].get("properties", {}).items()
    }
    about = {"name": definition["name"].replace("-", "_"), "description": definition["description"], "inputs": inputs,
             "output_type": "string", "skip_forward_signature_validation": True,
             "forward": lambda self, **arguments: home.run(self.name, **arguments)}
    return type("HomeTool", (Tool,), about)()


def test():
    script = home.lights()
    tools_for = Shortlist([tool(definition) for definition in home.TOOLS])
    agent = ToolCallingAgent(tools=tools_for(home.QUESTION), model=Scripted(script), verbosity_level=0)
    script.check(agent.run(home.QUESTION))


if __name__ == "__main__":
    test()
