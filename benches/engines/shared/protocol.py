"""Protocol 1 of docs/engines.md: what every engine of this folder has in common.

An engine calls `serve` with the package that it is about and a function that takes the tools of a catalog and
returns its search: a function of a query and the number of tools wanted, to pairs of tool id and score.
"""

import json
import os
import re
import sys
import time
from collections import Counter
from importlib import metadata

# Threads of NumPy that wait by spinning cost more than they give where other programs run. NumPy reads this once, so
# engines import this module first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def words(name):
    """An identifier as words: `createPullRequest` and `create_pull_request` give the same three."""
    return " ".join(re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).replace("_", " ").replace("-", " ").split())


def sentence(tool):
    """Name and description, which is what embedding models are given."""
    return f"{words(tool['name'])}: {tool.get('description') or ''}"


def text(tool):
    """All that a tool says: name, server with its description, tags, description, and its parameters with theirs."""
    server = [words(tool.get("server") or ""), tool.get("serverDescription") or ""]
    parts = [words(tool["name"]), *server, *tool.get("tags", []), tool.get("description") or ""]
    schema = tool.get("inputSchema")
    parameters = schema.get("properties") if isinstance(schema, dict) else None
    for name, parameter in (parameters or {}).items():
        described = parameter.get("description") if isinstance(parameter, dict) else None
        parts += [words(name), described if isinstance(described, str) else ""]
    return " ".join(part for part in parts if part)


def names(tools):
    """A name of its own for each tool, for libraries that know tools by their names alone: one that several tools have gets
    their server before it."""
    counts = Counter(tool["name"] for tool in tools)
    return apart(tools, [t["name"] if counts[t["name"]] == 1 else f"{t.get('server') or 'tool'}_{t['name']}" for t in tools])


def apart(tools, names):
    """The names, with numbers behind those that are equal. Names are read by what ranks: an id that is made up for the run would
    weigh in them, so the numbers follow what the tools say, whatever their order in the catalog."""
    said = [json.dumps({**tool, "id": None}, sort_keys=True) for tool in tools]
    given, taken, first = list(names), set(names), set()
    for at in sorted(range(len(tools)), key=lambda at: (names[at], said[at])):
        number = 1
        while number > 1 and given[at] in taken or number == 1 and names[at] in first:
            number += 1
            given[at] = f"{names[at]}_{number}"
        first.add(names[at])
        taken.add(given[at])
    return given


def best(ids, scores, k):
    """The `k` best pairs with a score above zero; ties by id, so that the order of the catalog decides nothing."""
    pairs = [(id, float(score)) for id, score in zip(ids, scores) if score > 0]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:k]


def serve(package, build):
    """Answers requests until the input ends. With `--version` it prints the version and ends."""
    version = metadata.version(package)
    if "--version" in sys.argv[1:]:
        print(version)
        return
    # What libraries print must not get between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    search = None
    for line in sys.stdin:
        request = json.loads(line)
        started = time.perf_counter()
        answer = {"id": request.get("id")}
        try:
            if request["op"] == "hello":
                answer = {"ok": True, "name": package, "version": version}
            elif request["op"] == "load":
                with open(request["catalog"], encoding="utf-8") as lines:
                    tools = [json.loads(tool) for tool in lines]
                search = build(tools)
                answer = {"ok": True, "tools": len(tools)}
            elif request["op"] == "route":
                pairs = search(request["query"], request["k"])
                answer["tools"] = [id for id, _ in pairs]
                # Some searches order their results and keep the scores to themselves.
                if all(score is not None for _, score in pairs):
                    answer["scores"] = [float(score) for _, score in pairs]
                answer["us"] = int((time.perf_counter() - started) * 1e6)
        except Exception as error:  # Whatever went wrong is the answer; the harness decides what follows.
            answer["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)
    # Threads and loops of libraries have nothing to finish.
    os._exit(0)
