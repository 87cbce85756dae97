"""What trials of the encoder and of the table are measured on: collections with the ranking of the command, measures, and intervals."""

import collections
import json
import subprocess
import sys
import time

import numpy as np

import text

SERVERS_OF_A_POOL = 4
SAMPLES, SEED = 2000, 20261
# Of a collection so many queries and tools are taken, at most, by chance.
QUERIES, TOOLS = 300, 1000
MEASURES = ("nDCG@10, alone", "recall@5, alone", "nDCG@10, fused", "recall@5, fused")


def log(line):
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]


class Collection:
    """Tools and queries with the first tools of an engine: `catalog` as read; `tools` texts; `queries` of (text, groups); `first` of lists of
    (tool number, score), `most` of them or, without that, as many as the command writes."""

    def __init__(self, command, folder, name, catalog, queries, engine="best", most=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.catalog = name, catalog
        (folder / "catalog.json").write_text(json.dumps(catalog), encoding="utf-8")
        asked = "\n".join(json.dumps(query, ensure_ascii=False) for query in queries)
        (folder / "queries.jsonl").write_text(asked + "\n", encoding="utf-8")
        if not (folder / "run.tsv").exists():
            log(f"{name}: {len(catalog)} tools, {len(queries)} queries")
            subprocess.run(
                [command, "bench", "eval", "--catalog", folder / "catalog.json", "--queries", folder / "queries.jsonl", "--engine",
                 engine, "--run-out", folder / "run.tsv.partial"], check=True, stdout=subprocess.DEVNULL)
            (folder / "run.tsv.partial").rename(folder / "run.tsv")
        number, self.tools = {}, []
        for tool in catalog:
            for known in (tool["name"], f"{tool.get('server') or ''}:{tool['name']}"):
                number.setdefault(known, len(self.tools))
            self.tools.append(text.tool_text(tool["name"], tool.get("description") or ""))
        found = collections.defaultdict(list)
        for line in open(folder / "run.tsv", encoding="utf-8"):
            query, rank, tool, score, _ = line.rstrip("\n").split("\t")
            if rank.isdigit() and (most is None or int(rank) <= most):
                found[query].append((number[tool], float(score)))
        self.queries, self.first = [], []
        for query in queries:
            if query["relevant"]:
                also = query.get("equivalent") or {}
                groups = [{number[tool], *(number[other] for other in also.get(tool, ()))} for tool in query["relevant"]]
                self.queries.append((query["query"], groups))
                self.first.append(found[query["id"]])


def beside_best(near):
    """The cosines of the tools in shares of the best; none is negative."""
    return np.maximum(near, 0) / max(near.max(), 1e-9)


def by_meaning(near):
    """What the cosines of the tools add to their scores, in shares of the most that they may."""
    return np.square(beside_best(near))


def first_ten(scores):
    """The tools with the highest scores, ties by number."""
    return np.argsort(-scores, kind="stable")[:10]


def measures(ranked, groups, depth=1):
    """nDCG@10 and recall at a depth: a group counts where its first member stands."""
    left, gain, first = list(groups), 0.0, 0
    for rank, tool in enumerate(ranked[:10], 1):
        group = next((group for group in left if tool in group), None)
        if group is not None:
            left.remove(group)
            gain += 1 / np.log2(rank + 1)
            first += rank <= depth
    best = sum(1 / np.log2(rank + 1) for rank in range(1, min(len(groups), 10) + 1))
    return gain / best, first / len(groups)


def scores_of(first, count):
    """The scores of `count` tools by an engine; those that are not among its first have none."""
    scores = np.zeros(count)
    for tool, score in first:
        scores[tool] += score
    return scores


def rare_word(count):
    """What a word is worth in a score that none of `count` tools has."""
    return np.log(2 * count + 2) * 2**18


def alone_and_fused(near, scores, most, groups):
    """nDCG@10 and recall@5 by the cosines `near`, and by `scores` with at most `most` added for meaning."""
    orders = map(first_ten, (near, scores + most * by_meaning(near)))
    return [value for order in orders for value in measures(order, groups, 5)]


def means(differences, groups, stream=0):
    """Means of samples of a bootstrap of the tools that queries ask for, since queries of one tool are alike."""
    of = collections.defaultdict(list)
    for value, group in zip(differences, groups):
        of[min(group[0])].append(value)
    sums, sizes = np.array([sum(of[key]) for key in sorted(of)]), np.array([len(of[key]) for key in sorted(of)])
    random = np.random.Generator(np.random.PCG64([SEED, stream] if stream else SEED))
    drawn = random.integers(len(sums), size=(SAMPLES, len(sums)))
    return sums[drawn].sum(1) / sizes[drawn].sum(1)


def interval(differences, groups):
    """Mean and 95 % interval."""
    low, high = np.percentile(means(differences, groups), (2.5, 97.5))
    return float(np.mean(differences)), float(low), float(high)


def pools(command, work, everyday, catalogs, is_wanted, servers, name, **of_engine):
    """Requests in pools of some servers each, as they were said."""
    found = []
    for at in range(0, len(servers), SERVERS_OF_A_POOL):
        pool = servers[at : at + SERVERS_OF_A_POOL]
        catalog = []
        for server in pool:
            known = json.load(open(catalogs / f"{server}.json", encoding="utf-8"))["tools"]
            catalog += [{"name": t["name"], "description": t.get("description") or "", "inputSchema": t.get("inputSchema") or {"type": "object"},
                         "server": server} for t in known]
        there = {(tool["server"], tool["name"]) for tool in catalog}
        queries = []
        for request in everyday:
            server = request["server"]
            if server in pool and is_wanted(request) and all((server, tool) in there for tool in request["relevant"]):
                whole = lambda tools: [f"{server}:{tool}" for tool in tools if (server, tool) in there]
                relevant = whole(request["relevant"])
                also = {tool: whole(request["equivalent"]) for tool in relevant[:1] if request["equivalent"]}
                queries.append({"id": request["id"], "query": request["said"], "relevant": relevant, "equivalent": also})
        if queries:
            found.append(Collection(command, work / f"{name}-{at}", f"{name}-{at}", catalog, queries, **of_engine))
    return found


def tested(gold, public):
    """(name, catalog, queries) of the everyday requests and the ten collections of the scorecard; of a request with two searches
    the first."""
    ten = [*public.glob("*/catalog.json"), gold / "household/catalog.json", gold / "workbench/catalog.json"]
    for folder, name, queries in [
        (gold / "everyday", "everyday, said", "queries.jsonl"), (gold / "everyday", "everyday, asked", "asked.jsonl"),
        *((path.parent, path.parent.name, "queries.jsonl") for path in sorted(ten, key=lambda path: path.parent.name)),
    ]:
        catalog = json.loads((folder / "catalog.json").read_text(encoding="utf-8"))
        yield name, catalog, [{**query, "query": query["query"].split("\n")[0]} for query in lines(folder / queries)]


def crowd(gold, catalogs):
    """(name, catalog, queries) of what models ask, among the tools of many more servers: as the scorecard has it, but of a request with
    two searches the first."""
    folder = gold / "everyday"
    added = json.loads((folder / "crowd.json").read_text(encoding="utf-8"))
    catalog = json.loads((folder / "catalog.json").read_text(encoding="utf-8"))
    for path in sorted(catalogs.glob("*.json")):
        if path.name not in added["without"]:
            server = path.stem.replace(".", "_")
            catalog += [{**tool, "server": server} for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]]
    queries = []
    for query in lines(folder / "asked.jsonl"):
        equivalent = dict(query.get("equivalent") or {})
        for tool in query["relevant"]:
            products = added["products"].get(tool.split(":")[0], [])
            if not any(product in query["query"].lower() for product in products):
                equivalent[tool] = [*equivalent.get(tool, []), *added["equivalent"].get(tool, [])]
        queries.append({**query, "query": query["query"].split("\n")[0], "equivalent": equivalent})
    return "everyday, asked, in a crowd", catalog, queries


def sample(name, catalog, queries, tools=TOOLS):
    """At most so many queries that a tool serves, and at most `tools` tools, those that are wanted among them."""
    random = np.random.Generator(np.random.PCG64([SEED, *name.encode()]))
    queries = [query for query in queries if query["relevant"]]
    queries = [queries[at] for at in sorted(random.permutation(len(queries))[:QUERIES])]
    names = lambda tool: {tool["name"], f"{tool.get('server') or ''}:{tool['name']}"}
    wanted = {n for q in queries for n in (*q["relevant"], *(n for of in (q.get("equivalent") or {}).values() for n in of))}
    kept = {at for at, tool in enumerate(catalog) if names(tool) & wanted}
    for at in random.permutation(len(catalog)):
        if len(kept) >= tools:
            break
        kept.add(int(at))
    return name, [catalog[at] for at in sorted(kept)], queries


def is_new(request):
    """Whether a request is one of `e6`, which no trial of the encoder trains on."""
    return request["id"].startswith("e6")


class Sets:
    """Everyday requests, also in a crowd, the ten collections and, before them, requests of the training data in pools of servers: `sets`
    by name as lists of collections, and `groups` by name with what the queries of a set ask for. `ten` has the names of the ten."""

    def __init__(self, command, folder, gold, public, catalogs, requests, name, engine):
        servers = sorted({request["server"] for request in requests})
        self.sets = {name: pools(command, folder, requests, catalogs, lambda _: True, servers, name, engine=engine)} if requests else {}
        own = {*self.sets}
        for number, (name, catalog, queries) in enumerate([crowd(gold, catalogs), *tested(gold, public)]):
            drawn = sample(name, catalog, queries, TOOLS if number else len(catalog))
            self.sets[name] = [Collection(command, folder / name.replace(", ", "-"), *drawn, engine=engine)]
        self.groups = {name: [[[(at, min(groups[0]))]] for at, of in enumerate(parts) for _, groups in of.queries]
                       for name, parts in self.sets.items()}
        self.ten = [name for name in self.sets if name not in own and not name.startswith("everyday")]


def figure(value, sign=""):
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("-", "−")


def report(sets, values, baseline, seconds={}, shown=MEASURES):
    """Prints the tables of a page: differences from the baseline with 95 % intervals, `*` where zero is outside, and on how many
    collections they are above and below zero."""
    groups, sets, ten = sets.groups, list(sets.sets), sets.ten
    base = values[baseline]

    def cell(other, names, at):
        drawn = [means((other[name] - base[name])[:, at], groups[name], sets.index(name)) for name in names]
        low, high = np.percentile(np.mean(drawn, 0), (2.5, 97.5))
        mean = np.mean([(other[name] - base[name])[:, at].mean() for name in names])
        return f"{figure(mean, '+')} [{figure(low, '+')}, {figure(high, '+')}]", int(low > 0) - int(high < 0)

    columns = {name: [name] for name in sets if name not in ten} | {"mean of the ten": ten}
    others = {name: other for name, other in values.items() if name != baseline}
    for at, what in enumerate(shown):
        print(f"\n{what}\n\n| | s a step | {' | '.join(columns)} | better / worse |\n|---|{'--:|' * (len(columns) + 2)}")
        cells = [figure(np.mean([base[name][:, at].mean() for name in names])) for names in columns.values()]
        print(f"| {baseline} | {seconds.get(baseline, '')} | {' | '.join(cells)} | |")
        for name, other in others.items():
            cells = [cell(other, names, at)[0] for names in columns.values()]
            signs = [cell(other, [one], at)[1] for one in sets]
            print(f"| {name} | {seconds.get(name, '')} | {' | '.join(cells)} | {signs.count(1)} / {signs.count(-1)} |")
    for at, what in enumerate(shown):
        print(f"\n{what}\n\n| collection | queries | {baseline} | {' | '.join(others)} |\n|---|{'--:|' * (len(others) + 2)}")
        for name in sets:
            found = [cell(other, [name], at) for other in others.values()]
            cells = [figure(base[name][:, at].mean()), *(said.split()[0] + "*" * abs(sign) for said, sign in found)]
            print(f"| {name} | {len(base[name])} | {' | '.join(cells)} |")
