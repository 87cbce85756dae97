"""Controlled trainings of the table: each does one thing otherwise than the baseline, with the same data, seed and teacher.

    scripts/table-trials COMMAND PUBLIC CATALOGS PAIRS TEACHER [--only NAME]... [--report | --finished FILE...]

No training sees a server of the test collection, or one of those that are kept apart here to choose by. The teacher may have seen the
latter, and has a mark before queries. Each table is measured alone, by cosine, and added to the scores of words as the default engine does.
"""

import argparse
import pathlib
import zlib

import numpy as np

import contrast
import everyday
import make
import write
from data import HELD_OUT
from measuring import SEED, Sets, alone_and_fused, lines, log, rare_word, report, scores_of
from words import Pieces, words

# What the nearest tool gains, in words that no other tool has: `semantic` of the configuration.
WEIGHT = 0.5
# As many pieces of a query or field are read.
MOST = 512
# As many servers of the training data are kept apart.
APART = 14
BASELINE, SHIPPED = "baseline", "shipped table"
# By name what is otherwise: constants of `contrast`, the number of steps, paraphrases that are drawn from, a source of pairs that is left
# out, and rows for pairs of words.
TRIALS = {
    BASELINE: {}, "baseline, another seed": {"SEED": contrast.SEED + 1}, "with paraphrases": {"paraphrases": True},
    "without requests as models ask": {"without": everyday.ASKED}, "without requests as people say them": {"without": everyday.SAID},
    "four of five batches of everyday requests": {"EVERYDAY": 0.8}, "temperature .05": {"TEMPERATURE": 0.05},
    "temperature .2": {"TEMPERATURE": 0.2}, "half the rate": {"RATE": contrast.RATE / 2},
    "twice the steps": {"steps": 2 * make.STEPS}, "four times the steps": {"steps": 4 * make.STEPS},
    "hashed pairs of words": {"pairs_of_words": True},
}
PAIRS_OF_WORDS, PAIR = 8192, "~"


class WithPairs(Pieces):
    """Pieces, and rows for pairs of neighbouring words, of which many share a row."""

    def __init__(self, pieces):
        super().__init__([piece for piece in pieces if not piece.startswith(PAIR)])
        self.first = len(self.pieces)
        self.pieces += [f"{PAIR}{number}" for number in range(PAIRS_OF_WORDS)]

    def of_text(self, text, at_most=None):
        own = words(text)
        pairs = [self.first + zlib.crc32(f"{one} {other}".encode()) % PAIRS_OF_WORDS for one, other in zip(own, own[1:])]
        return super().of_text(text, at_most) + pairs[:at_most]


def measured(sets, raw):
    """By set nDCG@10 and recall@5 of each query, alone and fused."""
    texts, rows, of_query, of_tool = write.from_bytes(raw)
    pieces = (WithPairs if texts[-1].startswith(PAIR) else Pieces)(texts)
    rows, found = rows.astype(np.float32), {}
    for name, parts in sets.sets.items():
        found[name] = []
        for of in parts:
            texts = [(tool["name"], tool.get("description") or "", everyday.parameters(tool)) for tool in of.catalog]
            bags = [contrast.bag(fields, pieces, MOST) for fields in texts]
            tools, _ = contrast.unit(contrast.encode(bags, rows, of_tool))
            asked = [pieces.of_text(line, MOST) for line, _ in of.queries]
            queries, _ = contrast.unit(contrast.encode([(numbers, [1.0] * len(numbers)) for numbers in asked], rows, of_query))
            for query, (_, groups), first in zip(queries, of.queries, of.first):
                scores = scores_of(first, len(tools))
                found[name].append(alone_and_fused(tools @ query, scores, WEIGHT * rare_word(len(tools)), groups))
    return {name: np.array(values) for name, values in found.items()}


def trained(given, apart, steps=make.STEPS, paraphrases=False, without=None, pairs_of_words=False, **constants):
    """The bytes of a table."""
    given = argparse.Namespace(
        data=given.pairs, everyday=given.gold / "training/everyday.jsonl", catalogs=given.catalogs, model=given.teacher, work=given.work,
        no_mark=False, kept_apart=[*make.kept_apart(), *apart], paraphrases=given.gold / "training/paraphrases.jsonl" if paraphrases else None)
    data, pieces, rows = make.distilled(given, HELD_OUT)
    if pairs_of_words:
        pieces, rows = WithPairs(pieces.pieces), np.pad(rows, ((0, PAIRS_OF_WORDS), (0, 0)))
    data.pairs = [pair for pair in data.pairs if pair["source"] != without]
    before = {name: getattr(contrast, name) for name in constants}
    vars(contrast).update(constants)
    table = contrast.train(rows, data, pieces, steps, log)
    vars(contrast).update(before)
    return write.to_bytes(pieces.pieces, *table)


def main():
    arguments = argparse.ArgumentParser(prog="table-trials")
    for name in ("command", "gold", "public", "catalogs", "pairs", "teacher", "shipped", "work"):
        arguments.add_argument(name, type=pathlib.Path)
    arguments.add_argument("--only", action="append", choices=list(TRIALS), help="these alone; may be repeated")
    arguments.add_argument("--report", action="store_true", help="train nothing: print what there is")
    arguments.add_argument("--finished", nargs="+", default=[], type=pathlib.Path, metavar="FILE",
                           help="train nothing: compare these tables with the shipped one")
    given = arguments.parse_args()
    (given.work / "teacher").mkdir(parents=True, exist_ok=True)
    requests = lines(given.gold / "training/everyday.jsonl")
    servers = sorted({request["server"] for request in requests})
    apart = {servers[at] for at in np.random.Generator(np.random.PCG64(SEED)).permutation(len(servers))[:APART]}
    # A finished table has seen them.
    requests = [] if given.finished else [request for request in requests if request["server"] in apart]
    sets = Sets(given.command, given.work / "collections", given.gold, given.public, given.catalogs, requests, "apart", "lexical")
    if given.finished:
        values = {str(path): measured(sets, path.read_bytes()) for path in given.finished}
        return report(sets, {SHIPPED: measured(sets, given.shipped.read_bytes())} | values, SHIPPED)
    values = {}
    for name, otherwise in TRIALS.items():
        path = given.work / f"{name.replace(' ', '-')}.bin"
        if not path.exists():
            if given.report or given.only and name not in given.only:
                continue
            log(f"{name}: training")
            path.with_suffix(".partial").write_bytes(trained(given, sorted(apart), **otherwise))
            path.with_suffix(".partial").rename(path)
        values[name] = measured(sets, path.read_bytes())
    if BASELINE in values:
        report(sets, values, BASELINE)


if __name__ == "__main__":
    main()
