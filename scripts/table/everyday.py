"""Everyday requests as training data of the table: two further sources, as people say them and as models ask."""

import json

from data import looks, same
from paraphrases import Paraphrases

SAID, ASKED = "everyday_said", "everyday_asked"
LICENCE = "Apache-2.0 (gold/training of this project; tools of the servers' catalogs under their own licences)"
# Numbers of tools from here on are those of everyday servers.
FIRST = 1_000_000


def parameters(tool):
    properties = (tool.get("inputSchema") or {}).get("properties") or {}
    parts = (f"{name} {value.get('description') or ''}" for name, value in properties.items() if isinstance(value, dict))
    return " . ".join(parts)


def add(data, requests, catalogs, kept_apart, paraphrases=None):
    """Adds requests and tools to `data`, all but those of servers that are kept apart and what says the same. Further
    requests are drawn from the file `paraphrases`, if there is one."""
    known = Paraphrases(paraphrases)
    read = lambda server: json.loads((catalogs / f"{server}.json").read_text(encoding="utf-8"))["tools"]
    apart = [{"name": t["name"], "description": t.get("description") or ""} for name in kept_apart for t in read(name)]
    apart_looks = set().union(*(looks(tool) for tool in apart)) if apart else set()
    apart_names = {tool["name"] for tool in apart}
    apart_text = "\n".join(same(tool["description"]) for tool in apart)
    gone = {
        number for number, tool in data.tools.items()
        if tool["source"] == "mcp" and (tool["name"] in apart_names or looks(tool) & apart_looks)
    }
    data.tools = {number: tool for number, tool in data.tools.items() if number not in gone}
    data.pairs = [
        pair for pair in data.pairs
        if not gone & set(pair["tools"]) and not (pair["source"] == "mcp" and same(pair["query"]) in apart_text)
    ]
    number_of, texts = {}, {}
    for line in requests.read_text(encoding="utf-8").splitlines():
        request = json.loads(line)
        server = request["server"]
        if server in kept_apart:
            continue
        if server not in texts:
            texts[server] = True
            for tool in read(server):
                tool = {
                    "tool": FIRST + len(number_of), "source": "everyday", "server": server, "name": tool["name"],
                    "description": tool.get("description") or "", "parameters": parameters(tool),
                }
                number_of[server, tool["name"]] = tool["tool"]
                if not looks(tool) & apart_looks:
                    data.tools[tool["tool"]] = tool
        of = lambda names: [number_of[server, name] for name in names if number_of.get((server, name)) in data.tools]
        wanted, fine = of(request["relevant"]), of(request["equivalent"])
        if not wanted:
            continue
        data.pairs.append({"source": SAID, "query": request["said"], "tools": wanted, "fine": fine})
        if len(wanted) == 1:
            others = [other for asked in request["asked"] for other in known.of_request(asked)]
            others += [said for name in request["relevant"] for said in known.of_tool(name)]
            data.pairs.extend({"source": SAID, "query": other, "tools": wanted, "fine": fine} for other in sorted(set(others)))
        data.pairs.extend({"source": ASKED, "query": asked, "tools": wanted, "fine": fine} for asked in request["asked"])
    data.sources = sorted({pair["source"] for pair in data.pairs})
