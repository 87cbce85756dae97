"""LangChain: a middleware that keeps the history within a budget. The agent's messages go into a conversation, and the model gets
the prompt that is compiled of it: large results as summaries, the rest by what the last question asks for."""

import contextweaver_rs as cw
import home
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult


class Compiled(AgentMiddleware):
    """Sends the model a prompt of at most `budget` tokens in place of the messages. `on_build` is told what was left out."""

    def __init__(self, budget=6000, on_build=None):
        super().__init__()
        self.budget, self.on_build = budget, on_build

    def compiled(self, request):
        """The request with the compiled history, which stands for every message but the instructions."""
        conversation = cw.ContextManager(on_build=self.on_build)
        conversation.ingest_conversation({"messages": convert_to_openai_messages(request.messages)})
        asked = [message.text for message in request.messages if isinstance(message, HumanMessage)]
        pack = conversation.build("answer", asked[-1] if asked else "", budget=self.budget)
        return request.override(messages=[HumanMessage(pack.prompt)])

    def wrap_model_call(self, request, handler):
        return handler(self.compiled(request))

    async def awrap_model_call(self, request, handler):
        return await handler(self.compiled(request))


class Scripted(BaseChatModel):
    """A model that keeps what it is asked, and says one thing."""

    asked: list = []

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("You paid 900 euros."))])


def history():
    """What an agent has said and called before: a result of 3 001 lines among it."""
    call = {"name": "list_transactions", "args": {"account_id": "main"}, "id": "call_1"}
    return [
        HumanMessage("Which transactions went to the landlord this year?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage(home.run("list_transactions"), tool_call_id="call_1"),
        AIMessage("One, on the first of November."),
        HumanMessage("How much was it?"),
    ]


def test():
    told, model = [], Scripted()
    agent = create_agent(model, [], middleware=[Compiled(budget=500, on_build=lambda phase, stats: told.append(stats))])
    state = agent.invoke({"messages": history()})
    [[prompt]], [stats] = model.asked, told
    assert state["messages"][-1].text == "You paid 900 euros." and len(state["messages"]) == 6
    assert stats["prompt_tokens"] == cw.count_tokens(prompt.text) <= 500 and stats["dropped_count"] == 0
    assert "landlord  -900.00 EUR" in prompt.text and prompt.text.endswith("How much was it?")
    print(f"the model read {stats['prompt_tokens']} tokens of {cw.count_tokens(home.run('list_transactions'))}")


if __name__ == "__main__":
    test()
