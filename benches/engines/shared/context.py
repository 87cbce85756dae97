"""Protocol 1 of docs/engines.md for context engines: what every one of this folder has in common.

A context engine calls `serve` with the package that it is about and up to two functions. `compile` takes the events of a
conversation, the query and the budget in tokens, and gives a prompt. `compact` takes a result and a cap
in tokens, and gives what is to stand for it.
"""

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import vocabularies

# What a chat calls the speaker of an event.
ROLES = {"user_turn": "user", "agent_msg": "assistant", "tool_call": "assistant", "tool_result": "tool"}


def shown(conversation):
    """Role and text of every event that a prompt may show, oldest first; what is remembered comes before all of them."""
    remembered = [f"{fact['key']}: {fact['value']}" for fact in conversation["facts"]]
    remembered += [episode["summary"] for episode in conversation["episodes"]]
    events = [event for event in conversation["events"] if not event.get("hidden")]
    return [("system", text) for text in remembered] + [
        (ROLES.get(event["kind"], "system"), event["text"]) for event in events
    ]


def serve(package, compile=None, compact=None):
    """Answers requests until the input ends. With `--version` it prints the version and ends."""
    version = metadata.version(package)
    if "--version" in sys.argv[1:]:
        print(version)
        return
    vocabularies.install(Path.cwd() / "tiktoken")
    # What libraries print must not get between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request.get("id")}
        try:
            if request["op"] == "hello":
                answer = {"ok": True, "name": package, "version": version}
            elif request["op"] == "compile" and compile:
                answer["text"] = compile(request["conversation"], request["query"], request["budget"])
            elif request["op"] == "compact" and compact:
                answer["text"] = compact(request["result"], request["cap"])
            elif request["op"] != "ping":
                answer["unsupported"] = f"it does not {request['op']}"
        except Exception as error:  # Whatever went wrong is the answer; the harness decides what follows.
            answer["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)
    # Threads and loops of libraries have nothing to finish.
    os._exit(0)
