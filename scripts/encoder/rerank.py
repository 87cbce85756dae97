"""Whether reranking the first twenty tools pays: late interaction, and a cross-encoder of two layers, against plain fusion.

    scripts/rerank-trial COMMAND PUBLIC CATALOGS [--seconds N]

Plain fusion is what the command itself ranks with the engine `best`. Weights are chosen on the requests `e6` of the training
data, which the shipped encoder has not seen; the cross-encoder is trained on the other servers' requests only. Everything else
is measured once, with what was chosen.
"""

import argparse
import collections
import functools
import json
import pathlib
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import network
import text

FIRST, SEED = 20, 20261
QUERY_PIECES, TOOL_PIECES, MODEL_PIECES = 32, 46, 128
SERVERS_OF_A_POOL = 4
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
POWERS = (1, 2, 4, 8)
LAYERS, RATE, WARM, QUERIES_OF_A_STEP = 2, 1e-4, 20, 4
SAMPLES = 2000


def log(line):
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]


class Collection:
    """Tools and queries with the first twenty of plain fusion: `tools` texts; `queries` of (text, groups); `first` of lists of
    (tool number, score)."""

    def __init__(self, command, folder, name, catalog, queries):
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        (folder / "catalog.json").write_text(json.dumps(catalog), encoding="utf-8")
        asked = "\n".join(json.dumps(query, ensure_ascii=False) for query in queries)
        (folder / "queries.jsonl").write_text(asked + "\n", encoding="utf-8")
        if not (folder / "run.tsv").exists():
            log(f"{name}: {len(catalog)} tools, {len(queries)} queries")
            subprocess.run(
                [command, "bench", "eval", "--catalog", folder / "catalog.json", "--queries", folder / "queries.jsonl", "--engine",
                 "best", "--run-out", folder / "run.tsv.partial"], check=True, stdout=subprocess.DEVNULL)
            (folder / "run.tsv.partial").rename(folder / "run.tsv")
        number, self.tools = {}, []
        for tool in catalog:
            for known in (tool["name"], f"{tool.get('server') or ''}:{tool['name']}"):
                number.setdefault(known, len(self.tools))
            self.tools.append(text.tool_text(tool["name"], tool.get("description") or ""))
        found = collections.defaultdict(list)
        for line in open(folder / "run.tsv", encoding="utf-8"):
            query, rank, tool, score, _ = line.rstrip("\n").split("\t")
            if rank.isdigit() and int(rank) <= FIRST:
                found[query].append((number[tool], float(score)))
        self.queries, self.first = [], []
        for query in queries:
            if query["relevant"]:
                also = query.get("equivalent") or {}
                groups = [{number[tool], *(number[other] for other in also.get(tool, ()))} for tool in query["relevant"]]
                self.queries.append((query["query"], groups))
                self.first.append(found[query["id"]])


def measures(ranked, groups):
    """nDCG@10 and recall@1: a group counts where its first member stands."""
    left, gain, first = list(groups), 0.0, 0
    for rank, tool in enumerate(ranked[:10], 1):
        group = next((group for group in left if tool in group), None)
        if group is not None:
            left.remove(group)
            gain += 1 / np.log2(rank + 1)
            first += rank == 1
    best = sum(1 / np.log2(rank + 1) for rank in range(1, min(len(groups), 10) + 1))
    return gain / best, first / len(groups)


def with_part(collection, parts, weight, power=1):
    """Measures of each query with `weight` of the part, which for the best of the twenty counts as much as the best score."""
    values = []
    for (_, groups), first, own in zip(collection.queries, collection.first, parts):
        if first:
            scores = np.array([score for _, score in first])
            own = np.maximum(own, 0) / max(own.max(), 1e-9)
            order = np.argsort(-(scores / max(scores.max(), 1e-9) + weight * own**power), kind="stable")
            first = [first[at] for at in order]
        values.append(measures([tool for tool, _ in first], groups))
    return np.array(values).reshape(-1, 2)


def interval(differences, groups):
    """Mean and 95 % interval by a bootstrap of the tools that queries ask for, since queries of one tool are alike."""
    of = collections.defaultdict(list)
    for value, group in zip(differences, groups):
        of[min(group[0])].append(value)
    sums, sizes = np.array([sum(of[key]) for key in sorted(of)]), np.array([len(of[key]) for key in sorted(of)])
    random = np.random.Generator(np.random.PCG64(SEED))
    drawn = random.integers(len(sums), size=(SAMPLES, len(sums)))
    low, high = np.percentile(sums[drawn].sum(1) / sizes[drawn].sum(1), (2.5, 97.5))
    return float(np.mean(differences)), float(low), float(high)


class LateInteraction:
    """For each piece of the query the nearest piece of the tool, by the encoder's own states; the mean over the query."""

    def __init__(self, weights, read):
        self.read = read
        self.weights = {name: jnp.asarray(values) for name, values in weights.items()}
        self.states = jax.jit(network.states)

    def pieces(self, texts):
        """Unit states of the pieces of each text, without the marks at both ends."""
        lists = [self.read(line, MODEL_PIECES) for line in texts]
        found = [None] * len(lists)
        for part, numbers, lengths in network.chunks(lists):
            states, _ = self.states(self.weights, numbers, lengths)
            states = np.array(states)
            states /= np.linalg.norm(states, axis=-1, keepdims=True) + 1e-9
            for row, place in enumerate(part):
                found[place] = states[row, 1 : lengths[row] - 1].astype(np.float16)
        return found

    def parts(self, collection):
        shown = sorted({tool for first in collection.first for tool, _ in first})
        tools = dict(zip(shown, self.pieces([collection.tools[tool] for tool in shown])))
        queries = self.pieces([query for query, _ in collection.queries])
        parts = []
        for query, first in zip(queries, collection.first):
            query = query.astype(np.float32)
            near = [(query @ tools[tool].astype(np.float32).T).max(1).mean() if len(query) and len(tools[tool]) else 0.0 for tool, _ in first]
            parts.append(np.array(near))
        return parts

    def milliseconds(self, collection):
        """The products alone, for a query with its twenty tools; the states of tools are kept."""
        first = next(first for first in collection.first if len(first) == FIRST)
        tools = [tool.astype(np.float32) for tool in self.pieces([collection.tools[tool] for tool, _ in first])]
        query = self.pieces([collection.queries[0][0]])[0].astype(np.float32)
        times = []
        for _ in range(100):
            start = time.perf_counter()
            for tool in tools:
                (query @ tool.T).max(1).mean()
            times.append(time.perf_counter() - start)
        return 1e3 * float(np.median(times)), sum(map(len, tools)) / FIRST


class CrossEncoder:
    """The first layers of the encoder over the query and the tool together, and one output."""

    def __init__(self, weights, read):
        self.read = read
        names = [name for name in weights if name.startswith("embeddings") or any(f"layer.{at}." in name for at in range(LAYERS))]
        self.weights = {name: jnp.asarray(weights[name]) for name in names} | {
            "out": jnp.zeros(network.WIDTH), "score": jnp.asarray(10.0)}

        def logits(weights, numbers, lengths):
            states, here = network.states(weights, numbers, lengths, LAYERS)
            mean = (states * here[:, :, None]).sum(1) / lengths[:, None]
            return mean @ weights["out"]

        def loss(weights, numbers, lengths, scores, right, there):
            shown = logits(weights, numbers, lengths).reshape(scores.shape) + weights["score"] * scores
            shown = jnp.where(there, shown, -1e9)
            own = jax.nn.logsumexp(jnp.where(right, shown, -1e9), 1)
            return (jax.nn.logsumexp(shown, 1) - own).mean()

        self.logits = jax.jit(logits)
        self.gradient = jax.jit(jax.value_and_grad(loss))

    def pairs(self, query, tools):
        numbers = np.zeros((FIRST, QUERY_PIECES + TOOL_PIECES), np.int32)
        lengths = np.ones(FIRST, np.int32)
        query = self.read(query, QUERY_PIECES)
        for row, tool in enumerate(tools):
            pieces = [*query, *self.read(tool, TOOL_PIECES + 1)[1:]]
            numbers[row, : len(pieces)] = pieces
            lengths[row] = len(pieces)
        return numbers, lengths

    def train(self, collections_, seconds):
        examples = []
        for collection in collections_:
            for (query, groups), first in zip(collection.queries, collection.first):
                right = [any(tool in group for group in groups) for tool, _ in first]
                if any(right) and not all(right):
                    examples.append((collection, query, first, right))
        random = np.random.Generator(np.random.PCG64(SEED))
        order = [int(at) for at in random.permutation(len(examples))]
        mean = {name: jnp.zeros_like(value) for name, value in self.weights.items()}
        square = dict(mean)

        @jax.jit
        def move(weights, mean, square, gradient, rate, step):
            mean = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, mean, gradient)
            square = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new * new, square, gradient)
            one = lambda weight, mean, square: weight - rate * (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.999**step)) + 1e-8)
            return jax.tree.map(one, weights, mean, square), mean, square

        start, lost, steps = time.time(), [], len(order) // QUERIES_OF_A_STEP
        for step in range(1, steps + 1):
            if time.time() - start > seconds:
                break
            batch = [examples[at] for at in order[(step - 1) * QUERIES_OF_A_STEP : step * QUERIES_OF_A_STEP]]
            pieces = [self.pairs(query, [of.tools[tool] for tool, _ in first]) for of, query, first, _ in batch]
            scores, right, there = (np.zeros((len(batch), FIRST), kind) for kind in (np.float32, bool, bool))
            for row, (_, _, first, is_right) in enumerate(batch):
                best = max(score for _, score in first)
                scores[row, : len(first)] = [score / max(best, 1e-9) for _, score in first]
                right[row, : len(first)], there[row, : len(first)] = is_right, True
            value, gradient = self.gradient(
                self.weights, np.concatenate([numbers for numbers, _ in pieces]), np.concatenate([lengths for _, lengths in pieces]),
                scores, right, there)
            left = 1 - (time.time() - start) / seconds
            rate = RATE * min(step / WARM, left, 1.0)
            self.weights, mean, square = move(self.weights, mean, square, gradient, rate, float(step))
            lost.append(float(value))
            if step % 50 == 0:
                log(f"step {step}/{steps}: loss {np.mean(lost[-50:]):.4f}, score weighs {float(self.weights['score']):.2f}")
        return len(examples), len(lost)

    def parts(self, collection, most=None):
        """Logits, exponentiated: the best of the twenty is 1 after division by it."""
        parts = []
        for (query, _), first in zip(collection.queries[:most], collection.first):
            numbers, lengths = self.pairs(query, [collection.tools[tool] for tool, _ in first])
            found = np.asarray(self.logits(self.weights, numbers, lengths))[: len(first)]
            parts.append(np.exp((found - found.max()) / 2) if len(first) else found)
        return parts


def pools(command, work, everyday, catalogs, is_wanted, servers, name):
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
            found.append(Collection(command, work / f"{name}-{at}", f"{name}-{at}", catalog, queries))
    return found


def main():
    arguments = argparse.ArgumentParser(prog="rerank-trial")
    for name in ("command", "gold", "public", "catalogs", "everyday", "model", "work"):
        arguments.add_argument(name, type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, default=900, help="how long the cross-encoder may learn; 0: not at all")
    given = arguments.parse_args()
    vocabulary = (given.model / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokenizer = text.Tokenizer(vocabulary[:-1] if vocabulary[-1] == "" else vocabulary)
    read = functools.cache(lambda line, most: tokenizer.encode(line, most))
    weights = network.read(given.model / "weights.bin")

    everyday = lines(given.everyday)
    is_new = lambda request: request["id"].startswith("e6")
    new = sorted({request["server"] for request in everyday if is_new(request)})
    old = sorted({request["server"] for request in everyday} - set(new))
    choosing = pools(given.command, given.work, everyday, given.catalogs, is_new, new, "choosing")
    tested = []
    for folder, name, queries in [
        (given.gold / "everyday", "everyday, said", "queries.jsonl"), (given.gold / "everyday", "everyday, asked", "asked.jsonl"),
        *((path.parent, path.parent.name, "queries.jsonl") for path in sorted([
            *given.public.glob("*/catalog.json"), given.gold / "household/catalog.json", given.gold / "workbench/catalog.json"],
            key=lambda path: path.parent.name)),
    ]:
        catalog = json.loads((folder / "catalog.json").read_text(encoding="utf-8"))
        asked = [{**query, "query": query["query"].split("\n")[0]} for query in lines(folder / queries)]
        tested.append(Collection(given.command, given.work / name.replace(", ", "-"), name, catalog, asked))

    late = LateInteraction(weights, read)
    ways = {"late interaction": (late, POWERS)}
    if given.seconds:
        cross = CrossEncoder(weights, read)
        learning = pools(given.command, given.work, everyday, given.catalogs, lambda request: not is_new(request), old, "learning")
        known, steps = cross.train(learning, given.seconds)
        log(f"learnt from {known} requests of {len(old)} servers, {steps} steps of {QUERIES_OF_A_STEP}")
        ways["two layers"] = (cross, (1,))
    for name, (way, powers) in ways.items():
        parts = [way.parts(collection) for collection in choosing]
        table = {}
        for power in powers:
            for weight in WEIGHTS:
                values = np.concatenate([with_part(of, part, weight, power) for of, part in zip(choosing, parts)])
                table[weight, power] = values.mean(0)
        weight, power = max(table, key=lambda key: (table[key][0], -key[0]))
        plain = table[0.0, powers[0]]
        print(f"\n{name}: weight {weight}, power {power}; on the requests it was chosen on nDCG@10 {plain[0]:.3f} -> {table[weight, power][0]:.3f}")
        print("\n| collection | queries | nDCG@10 | less plain fusion | recall@1 | less plain fusion |\n|---|--:|--:|--:|--:|--:|")
        for collection in tested:
            part = way.parts(collection)
            before, after = with_part(collection, part, 0.0), with_part(collection, part, weight, power)
            groups = [groups for _, groups in collection.queries]
            cells = []
            for of in (0, 1):
                mean, low, high = interval((after - before)[:, of], groups)
                cells += [f"{before[:, of].mean():.3f}", f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"]
            print(f"| {collection.name} | {len(groups)} | {' | '.join(cells)} |", flush=True)
    milliseconds, pieces = late.milliseconds(tested[0])
    print(f"\nlate interaction: {milliseconds:.2f} ms for the products with {FIRST} tools of {pieces:.0f} pieces")


if __name__ == "__main__":
    main()
