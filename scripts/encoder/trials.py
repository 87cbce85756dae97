"""Short controlled trainings of the encoder: each does one thing otherwise than the baseline, with the same steps, seed and data.

    scripts/encoder-trials COMMAND PUBLIC CATALOGS PAIRS [--steps N] [--only NAME]... [--report | --finished FOLDER... | --fusion | --fewer-pieces]

Every training starts from the weights as they are published and sees no request `e6` of `gold/training` and no server of the test
collection. It is measured alone, by cosine, and fused with words and table as the engine `best` does. The shipped weights came after
the trials, and have seen `e6`.
"""

import argparse
import copy
import functools
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import examples as data
import finish
import fusion
import network
import text
import train
from data import spread
from measuring import MEASURES, Sets, alone_and_fused, is_new, lines, log, rare_word, report, scores_of
from words import words

PIECES = 128
# BM25 over the words of name and description.
SATURATION, LENGTH = 1.2, 0.75
# Of a public source so many tools are looked through for wrong ones.
SOURCE_TOOLS = 600


class Words:
    """BM25 of queries and tools."""

    def __init__(self, texts):
        self.number = {}
        rows, columns = [], []
        for row, line in enumerate(texts):
            for word in words(line):
                rows.append(row)
                columns.append(self.number.setdefault(word, len(self.number)))
        counts = scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(texts), len(self.number)))
        length = np.asarray(counts.sum(1)).ravel()
        with_it = counts.getnnz(0)
        idf = np.log1p((len(texts) - with_it + 0.5) / (with_it + 0.5))
        counts = counts.tocoo()
        norm = SATURATION * (1 - LENGTH + LENGTH * length / length.mean())
        weights = idf[counts.col] * counts.data * (SATURATION + 1) / (counts.data + norm[counts.row])
        self.tools = scipy.sparse.csr_matrix((weights, (counts.row, counts.col)), counts.shape)

    def scores(self, queries, tools):
        asked = scipy.sparse.lil_matrix((len(queries), len(self.number)))
        for row, line in enumerate(queries):
            for word in set(words(line)) & self.number.keys():
                asked[row, self.number[word]] = 1
        return (asked.tocsr() @ self.tools[tools].T).toarray()


class Baseline(train.Plain):
    """The training that is compared with: no mark, and a part of the everyday requests as models ask."""

    said = 0.6

    def query(self, pieces):
        return pieces


class OtherSeed(Baseline):
    seed = train.SEED + 1


class HardNegatives(Baseline):
    """For some queries of the batch the wrong tool of the same server or source which the weights before the training, or BM25,
    rank first: each for half of them."""

    further = 48

    def start(self, drawn, base, read):
        self.base, self.read, self.texts = base, read, drawn.texts
        self.words, self.pool, pooled = Words(drawn.texts), {}, set()
        of_source = [spread(sorted({e.wanted for e in of}), SOURCE_TOOLS) for of in drawn.sources.values()]
        of_server = [sorted({n for e in of for n in (e.wanted, *e.allowed)}) for of in drawn.servers.values()]
        for of, tools in zip([*drawn.sources.values(), *drawn.servers.values()], [*of_source, *of_server]):
            pooled.update(tools)
            self.pool.update((e.wanted, np.array(tools)) for e in of)
        pooled = sorted(pooled)
        self.row = {number: row for row, number in enumerate(pooled)}
        self.vectors = network.encode(base, [read(drawn.texts[n], train.TOOL_PIECES) for n in pooled])
        log(f"wrong tools are looked for among {len(pooled)}")
        return drawn

    def wrong(self, random, lines, wanted, fine, shown):
        order = random.permutation(len(lines))[: self.further]
        half = self.further // 2
        lists = [self.read(lines[at], train.QUERY_PIECES) for at in order[:half]]
        lists += [self.read(self.texts[wanted[at]], train.TOOL_PIECES) for at in order]
        vectors, found = network.encode(self.base, lists), []
        for turn, at in enumerate(order):
            tools = self.pool[wanted[at]]
            rows = [self.row[n] for n in tools]
            if turn < half:
                scores = self.vectors[rows] @ vectors[turn]
            else:
                scores = self.words.scores([lines[at]], tools)[0]
            out = fine[at] | set(shown) | set(found)
            near = self.vectors[rows] @ vectors[half + turn] > data.TOO_NEAR
            for place in np.argsort(-scores, kind="stable"):
                if tools[place] not in out and not near[place]:
                    found.append(int(tools[place]))
                    break
        return found


class EarlierBatches(Baseline):
    """The tools of the last batches are wrong tools too, by the vectors that they had then."""

    batches = 4
    earlier = batches * train.BATCH

    def __init__(self):
        self.numbers, self.vectors = np.zeros(0, np.int64), np.zeros((0, network.WIDTH), np.float32)

    def known(self):
        return self.numbers.tolist(), self.vectors

    def end(self, shown, vectors):
        self.numbers = np.concatenate([self.numbers, np.array(shown, np.int64)])[-self.earlier :]
        self.vectors = np.concatenate([self.vectors, vectors])[-self.earlier :]

    def state(self):
        return {"earlier/numbers": self.numbers, "earlier/vectors": self.vectors}

    def go_on(self, state):
        self.numbers, self.vectors = state["earlier/numbers"], state["earlier/vectors"]


class Marked(Baseline):
    def query(self, pieces):
        return text.marked(pieces)


class Distilled(Baseline):
    """The tools of the batch should be as likely as by two teachers: the mean of BM25, divided by its best, and the cosine by the
    weights before the training."""

    weight, temperature = 0.5, 0.1

    def start(self, drawn, base, read):
        self.base, self.read, self.texts, self.words = base, read, drawn.texts, Words(drawn.texts)

        def of(queries, tools, wanted, hidden, taught):
            out = hidden.at[jnp.arange(len(wanted)), wanted].set(False)
            taught = jax.nn.softmax(jnp.where(out, -1e9, taught / self.temperature), 1)
            close = jnp.where(out, -1e9, queries @ tools.T / train.TEMPERATURE)
            apart = taught * (jnp.log(taught + 1e-9) - jax.nn.log_softmax(close, 1))
            return self.weight * jnp.where(out, 0.0, apart).sum(1).mean()

        self.of = jax.jit(jax.value_and_grad(of, (0, 1)))
        return drawn

    def term(self, lines, shown, vectors, wanted, hidden):
        lists = [self.read(line, train.QUERY_PIECES) for line in lines]
        before = network.encode(self.base, lists + [self.read(self.texts[n], train.TOOL_PIECES) for n in shown])
        by_words = self.words.scores(lines, shown)
        taught = np.zeros(hidden.shape, np.float32)
        taught[:, : len(shown)] = before[: len(lines)] @ before[len(lines) :].T
        taught[:, : len(shown)] += by_words / np.maximum(by_words.max(1, keepdims=True), 1e-9)
        first = len(lines) + self.unanswerable
        value, (of_queries, of_tools) = self.of(vectors[: len(lines)], vectors[first:], wanted, hidden, taught / 2)
        return value, np.pad(of_queries, ((0, self.unanswerable), (0, 0))), of_tools


class WithoutSaid(Baseline):
    said = 0.0


class WithoutAsked(Baseline):
    said = 1.0


class WithoutPublic(Baseline):
    one_place = 1.0

    def start(self, drawn, base, read):
        drawn = copy.copy(drawn)
        drawn.sources = {}
        return drawn


class WithoutUnanswerable(Baseline):
    unanswerable = 0


BASELINE, BEFORE, SHIPPED = "baseline", "weights before the training", "shipped weights"
# What is not trained has no way.
TRIALS = {
    BASELINE: Baseline, "baseline, another seed": OtherSeed, "hard negatives": HardNegatives,
    "negatives of earlier batches": EarlierBatches, "mark before queries": Marked, "distillation": Distilled, BEFORE: None,
    "with paraphrases": Baseline, "without requests as people say them": WithoutSaid,
    "without requests as models ask": WithoutAsked, "without public pairs": WithoutPublic,
    "without requests that no tool serves": WithoutUnanswerable,
}
PARAPHRASES = "with paraphrases"


class Measured(Sets):
    """The collections, and what weights give on them."""

    def __init__(self, given, everyday, read):
        new = [request for request in everyday if is_new(request)]
        super().__init__(given.command, given.work / "collections", given.gold, given.public, given.catalogs, new, "e6", "default")
        self.read = read

    def scored(self, weights, query):
        """For each query: its set, its text, its groups, the cosine of each tool, its score by words and table, and the greatest that
        meaning may add to a score."""
        parts = [of for parts in self.sets.values() for of in parts]
        texts = sorted({line for of in parts for line in of.tools})
        asked = sorted({line for of in parts for line, _ in of.queries})
        lists = [self.read(line, PIECES) for line in texts] + [query(self.read(line, PIECES - 1)) for line in asked]
        vectors = dict(zip([("tool", line) for line in texts] + [("query", line) for line in asked], network.encode(weights, lists)))
        for name, parts in self.sets.items():
            for of in parts:
                tools = np.array([vectors["tool", line] for line in of.tools])
                for (line, groups), first in zip(of.queries, of.first):
                    near, scores = tools @ vectors["query", line], scores_of(first, len(tools))
                    yield name, line, groups, near, scores, rare_word(len(tools))

    def of(self, weights, query):
        """By set nDCG@10 and recall@5 of each query, alone and fused."""
        found = {name: [] for name in self.sets}
        for name, _, groups, near, scores, most in self.scored(weights, query):
            found[name].append(alone_and_fused(near, scores, most, groups))
        return {name: np.array(values) for name, values in found.items()}


def with_fewer_pieces(tokenizer, given):
    """What turns texts into those pieces that a text of the training has, and into single letters and marks; and how many are kept."""
    drawn = data.Examples(given.pairs, given.everyday, given.catalogs, set(given.kept_apart), given.paraphrases)
    examples = [example for of in [*drawn.servers.values(), *drawn.sources.values()] for example in of]
    texts = {*drawn.texts, *(line for example in examples for line in [*example.said, *example.asked])}
    seen = {piece for line in sorted(texts) for piece in tokenizer.encode(line, PIECES)}
    fewer = text.Tokenizer.of(given.model)
    fewer.number = {piece: number for piece, number in tokenizer.number.items()
                    if number in seen or len(piece.removeprefix("##")) == 1 or piece.startswith("[")}
    return functools.cache(fewer.encode), len(fewer.number)


def main():
    arguments = argparse.ArgumentParser(prog="encoder-trials")
    for name in ("command", "gold", "public", "catalogs", "pairs", "model", "shipped", "work"):
        arguments.add_argument(name, type=pathlib.Path)
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("--only", action="append", choices=list(TRIALS), help="these alone; may be repeated")
    arguments.add_argument("--report", action="store_true", help="train nothing: print what there is")
    arguments.add_argument("--fusion", action="store_true", help="train nothing: try weights of meaning that differ by query")
    arguments.add_argument("--fewer-pieces", action="store_true",
                           help="train nothing: leave out the pieces of the vocabulary that no text of the training has")
    arguments.add_argument("--finished", nargs="+", default=[], type=pathlib.Path, metavar="FOLDER",
                           help="train nothing: compare the run of scripts/train-encoder in this folder with the shipped weights")
    given = arguments.parse_args()
    given.work = given.work / str(given.steps)
    given.work.mkdir(parents=True, exist_ok=True)
    tokenizer = text.Tokenizer.of(given.model)
    read = functools.cache(tokenizer.encode)
    requests = given.gold / "training/everyday.jsonl"
    old = given.work / "everyday.jsonl"
    raw = requests.read_text(encoding="utf-8").splitlines(keepends=True)
    old.write_text("".join(line for line in raw if not is_new(json.loads(line))), encoding="utf-8")
    options = [given.pairs, old, given.catalogs, given.model]

    # The shipped weights have seen `e6`, and the trials have not.
    seen = given.fewer_pieces or given.fusion or given.finished
    everyday = [] if seen else lines(requests)
    measured = Measured(given, everyday, read)
    base = network.read(given.model / "model.safetensors")
    shipped, query = lambda: network.read(given.shipped / "weights.bin"), train.Plain().query
    if given.fewer_pieces:
        # Those of the shipped weights.
        whole = (given.pairs, requests, given.catalogs, given.model, given.work, "--paraphrases", given.gold / "training/paraphrases.jsonl")
        of_train = train.options().parse_args([str(word) for word in whole])
        fewer, kept = with_fewer_pieces(tokenizer, of_train)
        log(f"{kept} of {len(tokenizer.number)} pieces are kept")
        values = {SHIPPED: measured.of(shipped(), query), "fewer pieces": Measured(given, everyday, fewer).of(shipped(), query)}
        return report(measured, values, SHIPPED)
    if given.fusion:
        values = fusion.tried(measured.scored(shipped(), query))
        return report(measured, values, fusion.ONE, shown=MEASURES[2:])
    if given.finished:
        values = {SHIPPED: measured.of(shipped(), query)}
        for run in given.finished:
            weights = finish.between(base, network.read(run / "mean.safetensors"), finish.TRAINED)
            values[run.parent.name] = measured.of(weights, query)
        return report(measured, values, SHIPPED)
    values, seconds, prepared = {}, {}, {}
    for name, kind in TRIALS.items():
        folder = given.work / name.replace(",", "").replace(" ", "-")
        folder.mkdir(exist_ok=True)
        kept, time_of = folder / "measures.npz", folder / "seconds"
        if not kept.exists() or set(np.load(kept)) != set(measured.sets):
            if given.report or given.only and name not in given.only:
                continue
            way = (kind or Baseline)()
            if name == BEFORE:
                weights = base
            else:
                more = ["--paraphrases", given.gold / "training/paraphrases.jsonl"] if name == PARAPHRASES else []
                log(f"{name}: training")
                run = given.work / "runs" / folder.name
                anew = not (run / "state.npz").exists()
                of_train = train.options().parse_args([str(word) for word in (*options, run, "--steps", given.steps, *more)])
                if len(more) not in prepared:
                    prepared[len(more)] = train.prepare(of_train)
                start = time.process_time()
                train.train(of_train, way, prepared[len(more)])
                if anew:
                    time_of.write_text(f"{(time.process_time() - start) / given.steps:.1f}")
                weights = finish.between(base, network.read(run / "mean.safetensors"), finish.TRAINED)
            log(f"{name}: measuring")
            partial = folder / "partial.npz"
            np.savez(partial, **measured.of(weights, way.query))
            partial.rename(kept)
        values[name] = dict(np.load(kept))
        if time_of.exists():
            seconds[name] = time_of.read_text()
    if BASELINE in values:
        report(measured, values, BASELINE, seconds)


if __name__ == "__main__":
    main()
