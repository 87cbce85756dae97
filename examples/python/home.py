"""A home with 97 tools, and a model that follows a script: what the recipes here are tried with. No network, no key."""

import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import contextweaver_rs as cw

HOUSEHOLD = pathlib.Path(__file__).resolve().parents[2] / "gold/household/catalog.json"
CATALOG = cw.Catalog.from_path(HOUSEHOLD)
# As MCP servers list them, under names that no two share.
TOOLS = CATALOG.as_tools("mcp")
QUESTION = "turn on the lights in the kitchen"
LIGHTS = next(tool.id for tool in CATALOG if tool.name == "set_lights")
CALLED = []


def run(name, /, **arguments):
    """Calls a tool of the home."""
    CALLED.append((name, arguments))
    if name == "list_transactions":
        rows = (f"2026-{day % 12 + 1:02}-{day % 28 + 1:02}  shop {day:4}  -{day % 97}.00 EUR" for day in range(3000))
        return "\n".join([*rows, "2026-11-01  landlord  -900.00 EUR"])
    return json.dumps({"done": name})


class Script:
    """What the model says, step by step: a text, or the name and the arguments of a call."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.offered = []

    def turn(self, offered):
        """The next step. `offered` are the names of the tools that the model is shown."""
        self.offered.append(list(offered))
        return self.steps.pop(0)

    def check(self, answer, most=6):
        """The model saw few tools, the right one was called, and the answer came back."""
        assert answer == "The kitchen is lit.", answer
        assert CALLED == [("set_lights", {"room": "kitchen", "power": "on"})], CALLED
        assert all(0 < len(names) <= most for names in self.offered) and "set_lights" in self.offered[0], self.offered
        print(f"of {len(TOOLS)} tools the model saw {', '.join(self.offered[0])}\n{answer}")


def measured(recipe, client, address, *more):
    """What `bench eval --choose` finds of a recipe that chooses, with one request and a model at `address`."""
    names = [f"{client}_{name}" for name in ("API_KEY", "BASE_URL", "MODEL")]
    with tempfile.TemporaryDirectory() as folder:
        queries = pathlib.Path(folder, "queries.jsonl")
        queries.write_text(json.dumps({"id": "1", "query": QUESTION, "relevant": ["set_lights"]}))
        command = [pathlib.Path(sys.executable).parent / "contextweaver", "bench", "eval", "--format", "json", *more]
        command += ["--catalog", HOUSEHOLD, "--queries", queries, "--choose", f"scripted={sys.executable} {recipe} serve"]
        command += [word for name in names for word in ("--choose-env", name)]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True,
            env={**os.environ, **dict(zip(names, ["none", address, "scripted"]))})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["choices"][0]["facts"]


def check_choices(recipe, client, form, scripts, enum):
    """What the model of each script says is counted as expected: where it is shown cards, and where it calls a tool of the definitions
    in the provider's `form`. `enum` leads from a request to the answers that its schema admits."""
    for step, expected in scripts:
        asked = []
        with serve(Script(step), asked) as address:
            facts = measured(recipe, client, address)
        assert facts["counts"]["shown"][expected] == 1, facts
        ids = enum(asked[0])
        assert len(ids) == 11 and LIGHTS in ids and ids[-1] == "none", ids
    for step, expected in [(("set_lights", {"room": "kitchen"}), "right"), ("Which room?", "none")]:
        script = Script(step)
        with serve(script) as address:
            facts = measured(recipe, client, address, "--choose-as", form)
        assert facts["counts"]["shown"][expected] == 1 and len(script.offered[0]) == 10, facts
    print(f"a question has {facts['tokens']['prompt_mean']:.0f} tokens, the definitions {facts['tokens']['tools_mean']:.0f}")


def lights():
    """The model turns on the lights."""
    return Script(("set_lights", {"room": "kitchen", "power": "on"}), "The kitchen is lit.")


def openai_reply(step, number):
    """A step as OpenAI's chat completions say it."""
    message = {"role": "assistant", "content": step}
    if not isinstance(step, str):
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        message |= {"content": None, "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    return {
        "id": "1", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def anthropic_reply(step, number):
    """A step as Anthropic's messages say it."""
    said = isinstance(step, str)
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": step[1]}
    return {
        "id": "1", "type": "message", "role": "assistant", "model": "scripted",
        "content": [{"type": "text", "text": step} if said else use],
        "stop_reason": "end_turn" if said else "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


@contextlib.contextmanager
def serve(script, asked=None):
    """The script behind the interfaces of OpenAI (chat) and Anthropic, at an address of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if asked is not None:
                asked.append(request)
            names = [tool.get("function", tool)["name"] for tool in request.get("tools", [])]
            reply = anthropic_reply if self.path.endswith("/messages") else openai_reply
            body = json.dumps(reply(script.turn(names), len(script.offered))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
