"""The training data of the encoder: query-tool pairs of open licence, and everyday requests with their servers' tools.

What the scorecard measures is left out as for the table (`table/data.py`); so are servers that are kept apart for
testing, with every tool of other sources that says the same.
"""

import collections
import json

import text
from paraphrases import Paraphrases
from data import HELD_OUT, Data, looks, same

# What a source of general pairs counts: those nearer to the use are drawn more often.
SHARES = {
    "apibench": 0.12, "aws": 0.1, "banking77": 0.06, "clinc": 0.12, "google": 0.1, "mcp": 0.2, "tldr": 0.2, "wordnet": 0.1,
}
# A tool whose text is nearer than this to that of the right one, by the teacher, is not a wrong answer.
TOO_NEAR = 0.9


class Example:
    """One wanted tool, the texts that ask for it, and the tools that are not wrong for it."""

    __slots__ = ("said", "asked", "wanted", "allowed")

    def __init__(self, said, asked, wanted, allowed):
        self.said, self.asked, self.wanted, self.allowed = said, asked, wanted, allowed


class Examples:
    """`texts` of tools; `servers` and `sources`: lists of examples by name."""

    def __init__(self, pairs_folder, everyday, catalogs, kept_apart, paraphrases=None):
        self.texts, self._numbers = [], {}
        apart = [tool for server in kept_apart for tool in catalog(catalogs, server)]
        apart_looks = set().union(*(looks(tool) for tool in apart)) if apart else set()
        apart_names = {tool["name"] for tool in apart}
        apart_text = "\n".join(same(tool["description"]) for tool in apart)
        self.servers, self.sources = collections.defaultdict(list), collections.defaultdict(list)
        # Requests that no tool of the server serves.
        self.unanswerable = collections.defaultdict(list)
        tools = {}
        self.left_out = 0
        known = Paraphrases(paraphrases)
        for line in open(everyday, encoding="utf-8"):
            request = json.loads(line)
            server = request["server"]
            if server in kept_apart:
                continue
            if not request["relevant"]:
                self.unanswerable[server].append([request["said"], *request["asked"]])
                continue
            if server not in tools:
                tools[server] = {tool["name"]: tool for tool in catalog(catalogs, server)}
            of = lambda name: self._number(tools[server][name]["name"], tools[server][name]["description"])
            allowed = {of(name) for name in [*request["relevant"], *request["equivalent"]] if name in tools[server]}
            for name in request["relevant"]:
                if looks(tools[server][name]) & apart_looks:
                    self.left_out += 1
                    continue
                # Where one thing is wanted, it is asked for in other words too.
                others = []
                if len(request["relevant"]) == 1:
                    others = [other for asked in request["asked"] for other in known.of_request(asked)] + known.of_tool(name)
                said = [request["said"], *others]
                self.servers[server].append(Example(said, request["asked"], of(name), allowed))
        data = Data(pairs_folder, HELD_OUT)
        for pair in data.pairs:
            source = pair["source"]
            shown = [data.tools[tool] for tool in pair["tools"]]
            if source == "mcp" and any(
                tool["name"] in apart_names or looks(tool) & apart_looks or same(pair["query"]) in apart_text
                for tool in shown
            ):
                self.left_out += 1
                continue
            numbers = [self._number(tool["name"], tool["description"]) for tool in shown]
            for number in numbers:
                self.sources[source].append(Example([pair["query"]], [pair["query"]], number, set(numbers)))
        self.servers, self.sources = dict(sorted(self.servers.items())), dict(sorted(self.sources.items()))

    def _number(self, name, description):
        read = text.tool_text(name, description or "")
        if read not in self._numbers:
            self._numbers[read] = len(self.texts)
            self.texts.append(read)
        return self._numbers[read]


def catalog(folder, server):
    with open(folder / f"{server}.json", encoding="utf-8") as file:
        return [{"name": t["name"], "description": t.get("description") or ""} for t in json.load(file)["tools"]]


def draw(random, examples, batch, unanswerable, one_place, said):
    """(texts, wanted tools, allowed tools, unanswerable texts) of a batch, half of it from one server or source. Of the
    requests that have no tool, those of that server come first."""
    servers, sources = list(examples.servers), list(examples.sources)
    server_shares = [len(examples.servers[name]) ** 0.75 for name in servers]
    server_shares = [share / sum(server_shares) for share in server_shares]
    source_shares = [SHARES.get(name, 0.05) for name in sources]
    source_shares = [share / sum(source_shares) for share in source_shares]
    everyone = [example for name in servers for example in examples.servers[name]]
    chosen, taken = [], collections.Counter()

    def take(pool, most, each):
        for at in random.permutation(len(pool))[: 4 * most]:
            if most == 0:
                break
            if taken[pool[at].wanted] < each:
                taken[pool[at].wanted] += 1
                chosen.append(pool[at])
                most -= 1
        return most

    left = batch // 2
    none = []
    if random.random() < one_place:
        while left:
            server = servers[random.choice(len(servers), p=server_shares)]
            left = take(examples.servers[server], left, 2)
            none.extend(examples.unanswerable.get(server, ()))
    else:
        left = take(examples.sources[sources[random.choice(len(sources), p=source_shares)]], left, 2)
    left += batch - batch // 2
    everyday = left * 11 // 20 if sources else left
    left -= everyday
    while everyday:
        everyday = take(everyone, everyday, 2)
    while left:
        left -= 1 - take(examples.sources[sources[random.choice(len(sources), p=source_shares)]], 1, 2)
    texts = []
    for example in chosen:
        of = example.said if random.random() < said else example.asked
        texts.append(of[int(random.integers(len(of)))])
    elsewhere = [of for server in servers for of in examples.unanswerable.get(server, ())]
    none = [none[at] for at in random.permutation(len(none))[:unanswerable]]
    while len(none) < unanswerable:
        none.append(elsewhere[int(random.integers(len(elsewhere)))])
    none = [of[0] if random.random() < said else of[-1] for of in none]
    return texts, [example.wanted for example in chosen], [example.allowed for example in chosen], none
