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

    lights = next(tool.id for tool in home.CATALOG if tool.name == "set_lights")
    scripts = [(json.dumps({"selection": lights}), "right"), (lights, "right"), ("none", "none"), ("the lights", "invalid")]
    for step, expected in scripts:
        asked = []
        with home.serve(home.Script(step), asked) as address:
            facts = home.measured(__file__, "OPENAI", address)
        assert facts["counts"]["shown"][expected] == 1, facts
        enum = asked[0]["response_format"]["json_schema"]["schema"]["properties"]["selection"]["enum"]
        assert len(enum) == 11 and lights in enum and enum[-1] == "none", enum
    for step, expected in [(("set_lights", {"room": "kitchen"}), "right"), ("Which room?", "none")]:
        script = home.Script(step)
        with home.serve(script) as address:
            facts = home.measured(__file__, "OPENAI", address, "--choose-as", "openai")
        assert facts["counts"]["shown"][expected] == 1 and len(script.offered[0]) == 10, facts
    print(f"a question has {facts['tokens']['prompt_mean']:.0f} tokens, the definitions {facts['tokens']['tools_mean']:.0f}")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else test()
