"""LangGraph: a graph with a node that chooses tools, one that asks the model with them, and one that calls them."""

import contextweaver_rs as cw
import home
from langchain_agent import Scripted, tool
from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


class State(MessagesState):
    """The conversation, and the names of the tools that the model is offered."""

    offered: list[str]


def graph(model, tools, top_k=5):
    """An agent over `tools`, of which the model sees `top_k`."""
    router = cw.Router([convert_to_openai_tool(tool) for tool in tools])
    by_name = {tool.name: tool for tool in tools}

    def choose(state):
        asked = [message.text for message in state["messages"] if isinstance(message, HumanMessage)]
        fitting = [choice.name for choice in router.route(asked[-1] if asked else "", top_k)]
        # What says nothing, such as a picture alone, leaves all of them.
        return {"offered": fitting or list(by_name)}

    def ask(state):
        offered = [by_name[name] for name in state["offered"]]
        return {"messages": [model.bind_tools(offered).invoke(state["messages"])]}

    builder = StateGraph(State)
    builder.add_node("choose", choose)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "choose")
    builder.add_edge("choose", "ask")
    builder.add_conditional_edges("ask", tools_condition, {"tools": "tools", END: END})
    builder.add_edge("tools", "ask")
    return builder.compile()


def test():
    script = home.lights()
    agent = graph(Scripted(script=script), [tool(definition) for definition in home.TOOLS])
    state = agent.invoke({"messages": [HumanMessage(home.QUESTION)], "offered": []})
    script.check(state["messages"][-1].text)


if __name__ == "__main__":
    test()
