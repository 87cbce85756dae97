"""Whether reranking the first twenty tools pays: late interaction, and a cross-encoder of two layers, against plain fusion.

    scripts/rerank-trial COMMAND PUBLIC CATALOGS [--seconds N]

Plain fusion is what the command itself ranks with the engine `best`. Weights are chosen on the requests `e6` of the training
data; the cross-encoder is trained on the other servers' requests only. Everything else is measured once, with what was chosen. An
encoder that has seen `e6`, as the shipped one, makes the choice too favourable to late interaction.
"""

import argparse
import functools
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import network
import text
from measuring import Collection, interval, is_new, lines, log, measures, pools, tested

FIRST, SEED = 20, 20261
QUERY_PIECES, TOOL_PIECES, MODEL_PIECES = 32, 46, 128
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
POWERS = (1, 2, 4, 8)
LAYERS, RATE, WARM, QUERIES_OF_A_STEP = 2, 1e-4, 20, 4


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


class LateInteraction:
    """For each piece of the query the nearest piece of the tool, by the encoder's own states; the mean over the query."""

    def __init__(self, weights, read):
        self.read = read
        self.weights = {name: jnp.asarray(values) for name, values in weights.items()}
        self.states = jax.jit(network.states)

    def pieces(self, texts, are_queries=False):
        """Unit states of the pieces of each text, without the marks at both ends."""
        lists = [self.read(line, MODEL_PIECES - are_queries) for line in texts]
        lists = [text.marked(pieces) for pieces in lists] if are_queries else lists
        found = [None] * len(lists)
        for part, numbers, lengths in network.chunks(lists):
            states, _ = self.states(self.weights, numbers, lengths)
            states = np.array(states)
            states /= np.linalg.norm(states, axis=-1, keepdims=True) + 1e-9
            for row, place in enumerate(part):
                found[place] = states[row, 1 + are_queries : lengths[row] - 1].astype(np.float16)
        return found

    def parts(self, collection):
        shown = sorted({tool for first in collection.first for tool, _ in first})
        tools = dict(zip(shown, self.pieces([collection.tools[tool] for tool in shown])))
        queries = self.pieces([query for query, _ in collection.queries], are_queries=True)
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
        query = self.pieces([collection.queries[0][0]], are_queries=True)[0].astype(np.float32)
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


def main():
    arguments = argparse.ArgumentParser(prog="rerank-trial")
    for name in ("command", "gold", "public", "catalogs", "everyday", "model", "work"):
        arguments.add_argument(name, type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, default=900, help="how long the cross-encoder may learn; 0: not at all")
    given = arguments.parse_args()
    read = functools.cache(text.Tokenizer.of(given.model).encode)
    weights = network.read(given.model / "weights.bin")

    everyday = lines(given.everyday)
    new = sorted({request["server"] for request in everyday if is_new(request)})
    old = sorted({request["server"] for request in everyday} - set(new))
    choosing = pools(given.command, given.work, everyday, given.catalogs, is_new, new, "choosing", most=FIRST)
    measured = [Collection(given.command, given.work / name.replace(", ", "-"), name, catalog, queries, most=FIRST)
                for name, catalog, queries in tested(given.gold, given.public)]

    late = LateInteraction(weights, read)
    ways = {"late interaction": (late, POWERS)}
    if given.seconds:
        cross = CrossEncoder(weights, read)
        learning = pools(given.command, given.work, everyday, given.catalogs, lambda request: not is_new(request), old, "learning",
                         most=FIRST)
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
        for collection in measured:
            part = way.parts(collection)
            before, after = with_part(collection, part, 0.0), with_part(collection, part, weight, power)
            groups = [groups for _, groups in collection.queries]
            cells = []
            for of in (0, 1):
                mean, low, high = interval((after - before)[:, of], groups)
                cells += [f"{before[:, of].mean():.3f}", f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"]
            print(f"| {collection.name} | {len(groups)} | {' | '.join(cells)} |", flush=True)
    milliseconds, pieces = late.milliseconds(measured[0])
    print(f"\nlate interaction: {milliseconds:.2f} ms for the products with {FIRST} tools of {pieces:.0f} pieces")


if __name__ == "__main__":
    main()
