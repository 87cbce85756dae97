"""Fine-tunes the encoder: a query should be nearer to its tool than to the other tools of the batch."""

import argparse
import functools
import hashlib
import json
import os
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import examples as data
import network
import text
from data import LICENCES, kept_apart
from everyday import ASKED, LICENCE
from everyday import SAID as SAID_SO

SEED = 20261
BATCH, TEMPERATURE, RATE, WARM = 96, 0.05, 5e-5, 30
# The share of the loss that asks which query belongs to a tool, beside which tool belongs to a query.
BACKWARD = 0.5
QUERY_PIECES, TOOL_PIECES = 48, 64
# Requests in a batch that no tool serves: they are wrong queries for every tool.
UNANSWERABLE = 8
# The share of batches whose first half is of one server, and of everyday requests read as they were said and not as models ask.
ONE_PLACE, SAID = 0.65, 0.8
# A checkpoint every so many steps; the mean is that of the weights, each step's counting this much less than the next's.
EVERY, MEMORY = 25, 0.985


def log(line):
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


@jax.jit
def loss_of(queries, tools, wanted, hidden):
    """Mean loss of a batch, and its gradients by both sides' vectors. `hidden` marks what is not a wrong answer. Queries
    without a tool come last."""

    def loss(queries, tools):
        every = queries @ tools.T / TEMPERATURE
        close, none = every[: len(wanted)], every[len(wanted) :]
        rows = jnp.arange(len(wanted))
        own = close[rows, wanted]
        forward = jax.nn.logsumexp(jnp.where(hidden, -1e9, close), 1)
        forward = jnp.logaddexp(forward, own) - own
        other = jnp.where(hidden, -1e9, close)[:, wanted]
        other = jnp.concatenate([other, none[:, wanted]])
        backward = jnp.logaddexp(jax.nn.logsumexp(other, 0), own) - own
        return (forward + BACKWARD * backward).mean() / (1 + BACKWARD)

    return jax.value_and_grad(loss, (0, 1))(queries, tools)


@functools.partial(jax.jit, donate_argnums=(0, 1, 2, 3))
def adam(weights, mean, square, average, gradient, rate, step):
    def one(weight, mean, square, average, gradient):
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * jnp.square(gradient)
        move = mean / (1 - 0.9**step) / (jnp.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weight = weight - rate * move
        keep = jnp.minimum(MEMORY, step / (step + 9.0))
        return weight, mean, square, keep * average + (1 - keep) * weight

    moved = {name: one(weights[name], mean[name], square[name], average[name], gradient[name]) for name in weights}
    return tuple({name: values[part] for name, values in moved.items()} for part in range(4))


def near_tools(vectors, limit):
    """For each tool those that are nearly the same."""
    found = []
    for at in range(0, len(vectors), 512):
        close = vectors[at : at + 512] @ vectors.T > limit
        found.extend(np.flatnonzero(row) for row in close)
    return found


class Plain:
    """The training as it is shipped. `trials.py` has others, each of which does one thing otherwise."""

    seed, said, one_place, unanswerable = SEED, SAID, ONE_PLACE, UNANSWERABLE
    # Further wrong tools of a batch, at most: those that are read, and those whose vectors are known.
    further, earlier = 0, 0

    def start(self, drawn, base, read):
        """Takes the examples, the weights to begin with and what turns texts into pieces; returns the examples to train on."""
        return drawn

    def query(self, pieces):
        """The pieces of a query, from those of its text."""
        return text.marked(pieces)

    def wrong(self, random, lines, wanted, fine, shown):
        """Up to `further` numbers of wrong tools that are read too. `fine` has the tools that are not wrong for each query."""
        return []

    def known(self):
        """Numbers and vectors of up to `earlier` wrong tools that are not read again."""
        return [], np.zeros((0, network.WIDTH), np.float32)

    def term(self, lines, shown, vectors, wanted, hidden):
        """A further term of the loss, and its gradients by the vectors of queries and tools."""
        return 0.0, 0.0, 0.0

    def end(self, shown, vectors):
        """Called after each step, with the tools of the batch."""

    def state(self):
        """Arrays that a run that was stopped needs to go on."""
        return {}

    def go_on(self, state):
        """Takes what `state` has given."""


def options():
    arguments = argparse.ArgumentParser(prog="train-encoder")
    arguments.add_argument("pairs", type=pathlib.Path)
    arguments.add_argument("everyday", type=pathlib.Path)
    arguments.add_argument("catalogs", type=pathlib.Path)
    arguments.add_argument("model", type=pathlib.Path)
    arguments.add_argument("work", type=pathlib.Path)
    arguments.add_argument("--kept-apart", action="append", default=kept_apart(), metavar="SERVER")
    arguments.add_argument("--paraphrases", type=pathlib.Path, help="draw further requests from these")
    arguments.add_argument("--steps", type=int, default=450)
    return arguments


def prepare(given):
    """What a training begins with: weights, examples, what turns texts into pieces, and for each tool those nearly the same."""
    given.work.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(given.work.parent / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

    read = functools.cache(text.Tokenizer.of(given.model).encode)
    base = network.read(given.model / "model.safetensors")
    drawn = data.Examples(given.pairs, given.everyday, given.catalogs, set(given.kept_apart), given.paraphrases)
    log(f"{len(drawn.texts)} tools; everyday {sum(map(len, drawn.servers.values()))} of {len(drawn.servers)} servers; "
        f"general {dict((name, len(of)) for name, of in drawn.sources.items())}; left out {drawn.left_out}")

    # Tools of everyday servers that the teacher takes for one another are not used against one another.
    everyday = sorted({n for of in drawn.servers.values() for e in of for n in (e.wanted, *e.allowed)})
    vectors = network.encode(base, [read(drawn.texts[n], TOOL_PIECES) for n in everyday])
    near = {n: {everyday[m] for m in of} for n, of in zip(everyday, near_tools(vectors, data.TOO_NEAR))}
    log(f"{sum(len(of) > 1 for of in near.values())} of {len(everyday)} everyday tools have a near copy")
    return base, drawn, read, near


def train(given, way=Plain(), prepared=None):
    given.work.mkdir(parents=True, exist_ok=True)
    base, drawn, read, near = prepared or prepare(given)
    drawn = way.start(drawn, base, read)
    names = sorted(base)
    state_file = given.work / "state.npz"
    weights = {name: jnp.asarray(base[name]) for name in names}
    mean = {name: jnp.zeros_like(weights[name]) for name in names}
    square = {name: jnp.zeros_like(weights[name]) for name in names}
    average = {name: jnp.array(weights[name]) for name in names}
    start = 0
    if state_file.exists():
        state = np.load(state_file)
        start = int(state["step"])
        weights, mean, square, average = (
            {name: jnp.asarray(state[f"{part}/{name}"]) for name in names} for part in range(4)
        )
        way.go_on(state)
        log(f"goes on after step {start}")
    lost, since = [], time.time()
    for step in range(start + 1, given.steps + 1):
        random = np.random.Generator(np.random.PCG64([way.seed, step]))
        lines, wanted, allowed, none = data.draw(random, drawn, BATCH, way.unanswerable, way.one_place, way.said)
        shown = sorted(set(wanted))
        place = {number: at for at, number in enumerate(shown)}
        fine = [also | near.get(number, set()) | {number} for number, also in zip(wanted, allowed)]
        shown += way.wrong(random, lines, wanted, fine, shown)
        known, vectors_known = way.known()
        # As many columns at every step, so that one program serves all.
        columns = BATCH + way.further
        hidden = np.ones((BATCH, columns + way.earlier), bool)
        for row, of in enumerate(fine):
            hidden[row, : len(shown)] = [other in of for other in shown]
            hidden[row, columns : columns + len(known)] = [other in of for other in known]
        lists = [way.query(read(line, QUERY_PIECES)) for line in [*lines, *none]]
        lists += [read(drawn.texts[n], TOOL_PIECES) for n in shown]
        first = BATCH + way.unanswerable
        backwards, found = [], np.zeros((first + columns + way.earlier, network.WIDTH), np.float32)
        for part, numbers, lengths in network.chunks(lists):
            vectors, backward = network.there(weights, numbers, lengths)
            found[part] = np.asarray(vectors)[: len(part)]
            backwards.append((part, len(numbers), backward))
        found[first + columns : first + columns + len(known)] = vectors_known
        wanted = np.array([place[number] for number in wanted], np.int32)
        loss, (of_queries, of_tools) = loss_of(found[:first], found[first:], wanted, hidden)
        gradients = np.concatenate([of_queries, of_tools])
        more, of_queries, of_tools = way.term(lines, shown, found, wanted, hidden)
        if more:
            loss = loss + more
            gradients += np.concatenate([of_queries, of_tools])
        total = None
        while backwards:
            part, rows, backward = backwards.pop()
            gradient = np.zeros((rows, network.WIDTH), np.float32)
            gradient[: len(part)] = gradients[part]
            of_part = network.back(backward, gradient)
            total = of_part if total is None else network.add(total, of_part)
        rate = RATE * min(step / WARM, (given.steps - step + 1) / max(given.steps - WARM, 1), 1.0)
        weights, mean, square, average = adam(weights, mean, square, average, total, rate, float(step))
        way.end(shown, found[first : first + len(shown)])
        lost.append(float(loss))
        if step % 10 == 0:
            log(f"step {step}/{given.steps}: loss {np.mean(lost[-10:]):.4f}, {(time.time() - since) / len(lost):.2f} s a step")
        if step % EVERY == 0 or step == given.steps:
            partial = given.work / "state.partial.npz"
            np.savez(partial, step=step, **{
                f"{part}/{name}": np.asarray(of[name])
                for part, of in enumerate((weights, mean, square, average)) for name in names
            }, **way.state())
            os.replace(partial, state_file)
            network.write(given.work / "mean.safetensors", {name: np.asarray(average[name]) for name in names})
            network.write(given.work / "last.safetensors", {name: np.asarray(weights[name]) for name in names})
    digest = lambda path: hashlib.sha256(path.read_bytes()).hexdigest()
    manifest = {
        "inputs": {path.name: digest(path) for path in (
            given.pairs / "pairs.jsonl.gz", given.pairs / "tools.jsonl.gz", given.everyday, given.model / "model.safetensors",
            *([given.paraphrases] if given.paraphrases else []))},
        "kept_apart": given.kept_apart, "left_out": data.HELD_OUT,
        "attribution": {
            "model": "all-MiniLM-L6-v2, Apache-2.0, by the Sentence Transformers authors; changed: fine-tuned by scripts/train-encoder on the "
            "sources below, averaged with the weights from before, and rounded",
            "sources": {source: LICENCES[source] for source in drawn.sources} | dict.fromkeys((ASKED, SAID_SO), LICENCE),
        },
        "steps": given.steps, "mark": True,
        "parameters": {k: getattr(way, k.lower(), globals()[k]) for k in (
            "SEED", "BATCH", "TEMPERATURE", "RATE", "WARM", "BACKWARD", "UNANSWERABLE", "QUERY_PIECES", "TOOL_PIECES", "ONE_PLACE", "SAID", "MEMORY")},
        "versions": {"jax": jax.__version__, "numpy": np.__version__, "python": sys.version.split()[0]},
    }
    (given.work / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    train(options().parse_args())
