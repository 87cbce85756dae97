"""A model behind OpenAI's chat completions chooses among the cards of `contextweaver bench eval`. Any server that speaks them will
do: the client reads its address from OPENAI_BASE_URL, and the model is the one of OPENAI_MODEL.

    contextweaver bench eval --catalog tools.json --queries queries.jsonl --choose 'model=python3 choose_openai.py serve' \\
      --choose-env OPENAI_API_KEY --choose-env OPENAI_BASE_URL --choose-env OPENAI_MODEL
"""

import json
import os
import sys

import openai


def choose(client, model, request):
    """What the model says: the id of a tool, `none`, or a text that is neither; None where it calls no tool."""
    if "tools" in request:
        # With --choose-as openai: the model calls one of the tools, as it would at work.
        messages = [{"role": "user", "content": request["query"]}]
        reply = client.chat.completions.create(model=model, messages=messages, tools=request["tools"])
        calls = reply.choices[0].message.tool_calls
        return request["names"].get(calls[0].function.name, calls[0].function.name) if calls else None
    # The schema admits the ids of the cards and none. A server that does not heed it says the id alone, as the prompt asks.
    form = {"type": "json_schema", "json_schema": {"name": "tool_selection", "strict": True, "schema": request["schema"]}}
    messages = [{"role": "user", "content": request["prompt"]}]
    reply = client.chat.completions.create(model=model, messages=messages, response_format=form)
    text = reply.choices[0].message.content or ""
    try:
        return str(json.loads(text)["selection"])
    except (ValueError, TypeError, KeyError):
        return text


def serve():
    """Answers each line of the input by protocol 1 of docs/engines.md."""
    client, model = openai.OpenAI(), os.environ["OPENAI_MODEL"]
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            answer = {"ok": True, "name": "chat completions", "version": model}
        elif request["op"] == "ping":
            answer = {"id": request["id"]}
        else:
            answer = {"id": request["id"], "choice": choose(client, model, request)}
        print(json.dumps(answer), flush=True)


def test():
    """A model that follows a script is right by an id, by a text and by a call, and says none in two ways."""
    import home

    scripts = [(json.dumps({"selection": home.LIGHTS}), "right"), (home.LIGHTS, "right"), ("none", "none"), ("the lights", "invalid")]
    enum = lambda asked: asked["response_format"]["json_schema"]["schema"]["properties"]["selection"]["enum"]
    home.check_choices(__file__, "OPENAI", "openai", scripts, enum)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else test()
