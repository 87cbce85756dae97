"""A model behind Anthropic's messages chooses among the cards of `contextweaver bench eval`. The client reads its address from
ANTHROPIC_BASE_URL where there is one, and the model is the one of ANTHROPIC_MODEL.

    contextweaver bench eval --catalog tools.json --queries queries.jsonl --choose 'model=python3 choose_anthropic.py serve' \\
      --choose-env ANTHROPIC_API_KEY --choose-env ANTHROPIC_MODEL
"""

import json
import os
import sys

import anthropic


def choose(client, model, request):
    """What the model says: the id of a tool, `none`, or a text that is neither; None where it calls no tool."""
    if "tools" in request:
        # With --choose-as anthropic: the model calls one of the tools, as it would at work.
        messages = [{"role": "user", "content": request["query"]}]
        reply = client.messages.create(model=model, max_tokens=1000, messages=messages, tools=request["tools"])
        called = next((part.name for part in reply.content if part.type == "tool_use"), None)
        return request["names"].get(called, called)
    # The one tool that it can call takes the ids of the cards and none.
    tool = {"name": "tool_selection", "description": "Choose one of the tools, or none.", "input_schema": request["schema"]}
    reply = client.messages.create(
        model=model, max_tokens=1000, messages=[{"role": "user", "content": request["prompt"]}],
        tools=[tool], tool_choice={"type": "tool", "name": tool["name"]})
    said = (part.input.get("selection", "") if part.type == "tool_use" else part.text for part in reply.content)
    return str(next(said, ""))


def serve():
    """Answers each line of the input by protocol 1 of docs/engines.md."""
    client, model = anthropic.Anthropic(), os.environ["ANTHROPIC_MODEL"]
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            answer = {"ok": True, "name": "messages", "version": model}
        elif request["op"] == "ping":
            answer = {"id": request["id"]}
        else:
            answer = {"id": request["id"], "choice": choose(client, model, request)}
        print(json.dumps(answer), flush=True)


def test():
    """A model that follows a script is right by an id and by a call, and says none in two ways."""
    import home

    select = lambda id: ("tool_selection", {"selection": id})
    scripts = [(select(home.LIGHTS), "right"), (select("none"), "none"), ("the lights", "invalid")]
    enum = lambda asked: asked["tools"][0]["input_schema"]["properties"]["selection"]["enum"]
    home.check_choices(__file__, "ANTHROPIC", "anthropic", scripts, enum)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else test()
