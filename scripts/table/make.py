"""The whole way from training data and teacher to a table: read, teach, distil, contrast, write."""

import argparse
import hashlib
import json
import pathlib
import platform
import sys
import time

import numpy as np

import contrast
import distil
import everyday
import teach
import write
from data import HELD_OUT, LICENCES, Data, kept_apart
from words import Pieces

STEPS = 1200


def log(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def texts_of(data):
    for tool in data.tools.values():
        yield f"{tool['name']} . {tool['description']} . {tool['parameters']}"
    for pair in data.pairs:
        yield pair["query"]


def distilled(given, left_out, dims=contrast.DIMS[-1], log=log):
    """Data without `left_out` and with everyday requests, the pieces and their rows, fitted to the teacher."""
    everything = Data(given.data)
    data = Data(given.data, left_out) if left_out else everything
    for part in {id(everything): everything, id(data): data}.values():
        everyday.add(part, given.everyday, given.catalogs, given.kept_apart, given.paraphrases)
    vocabulary = (given.model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    counts = distil.count_words(texts_of(everything))
    kept = distil.choose(vocabulary, distil.count_words(texts_of(data)) if left_out else counts)
    pieces = Pieces(kept)
    # The teacher is asked about all words of all data, so that what it said serves every table.
    known, own = distil.candidates(vocabulary, counts)
    teachings = list(everything.teacher_texts())
    wanted = [("pieces", known), ("texts", own)]
    wanted += [("texts" if given.no_mark else kind, [teach.text_of(*text) for text in texts]) for kind, texts in teachings]
    of_known, of_own, *of_texts = teach.embed(given.model, wanted, given.work / "teacher", log)
    vector_of = dict(zip(known, of_known)) | dict(zip(own, of_own))
    allowed = {tool["name"] + "\0" + tool["description"] for tool in data.tools.values()}
    allowed |= {"\0" + pair["query"] for pair in data.pairs}
    lists, vectors = [], []
    for (_, texts), found in zip(teachings, of_texts):
        for (name, description), vector in zip(texts, found):
            numbers = pieces.of_text(f"{name} . {description}"[:2000], 40)
            if name + "\0" + description in allowed and numbers:
                lists.append(numbers)
                vectors.append(vector)
    vectors = np.array(vectors)
    log(f"{len(kept)} pieces ({sum(p in set(own) for p in kept)} words of its own), {len(lists)} texts")
    mean, directions = distil.project(vectors, dims)
    single = np.array([vector_of[piece] for piece in kept])
    start = (single - single.mean(0, dtype=np.float64).astype(np.float32)) @ directions
    start *= distil.frequency_weights(lists, len(kept))[:, None]
    return data, pieces, distil.fit(lists, (vectors - mean) @ directions, start, log)


def main():
    arguments = argparse.ArgumentParser(prog="train-table")
    arguments.add_argument("data", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--model", type=pathlib.Path, required=True, help="the teacher's folder")
    arguments.add_argument("--everyday", type=pathlib.Path, required=True)
    arguments.add_argument("--catalogs", type=pathlib.Path, required=True)
    arguments.add_argument("--kept-apart", action="append", default=kept_apart(), metavar="SERVER")
    arguments.add_argument("--paraphrases", type=pathlib.Path, help="draw further requests from these")
    arguments.add_argument("--no-mark", action="store_true", help="the teacher was trained without a mark before queries")
    arguments.add_argument("--work", type=pathlib.Path, required=True)
    arguments.add_argument("--leave-out", action="append", default=[], metavar="SOURCE")
    arguments.add_argument("--all-sources", action="store_true")
    arguments.add_argument("--steps", type=int, default=STEPS)
    given = arguments.parse_args()
    said = given.model / "model.json"
    if said.exists() and json.loads(said.read_text(encoding="utf-8")).get("mark", False) == given.no_mark:
        arguments.error(f"{said}: the teacher was trained with{'' if given.no_mark else 'out'} a mark before queries")
    left_out = [*([] if given.all_sources else HELD_OUT), *given.leave_out]
    (given.work / "teacher").mkdir(parents=True, exist_ok=True)
    data, pieces, rows = distilled(given, left_out)
    table, query, tool = contrast.train(rows, data, pieces, given.steps, log)
    raw = write.to_bytes(pieces.pieces, table, query, tool)
    (given.out / "table.bin").write_bytes(raw)
    digest = lambda raw: hashlib.sha256(raw).hexdigest()
    manifest = {
        "table": {"sha256": digest(raw), "bytes": len(raw), "pieces": len(pieces.pieces), "dimensions": table.shape[1]},
        "inputs": {
            "teacher": {"sha256": digest((given.model / "model.safetensors").read_bytes()), "mark": not given.no_mark},
            "everyday": {"sha256": digest(given.everyday.read_bytes())},
            **({"paraphrases": {"sha256": digest(given.paraphrases.read_bytes())}} if given.paraphrases else {}),
            **{n: {"sha256": digest((given.data / n).read_bytes())} for n in ("tools.jsonl.gz", "pairs.jsonl.gz")},
        },
        "left_out": left_out,
        "kept_apart": given.kept_apart,
        "attribution": {
            "teacher": "all-MiniLM-L6-v2, Apache-2.0, by the Sentence Transformers authors; changed: fine-tuned by scripts/train-encoder, its word vectors "
            "were projected, fitted to its sentence vectors, trained on the pairs below and rounded",
            "sources": {source: LICENCES.get(source, everyday.LICENCE) for source in data.sources},
        },
        "pairs_by_source": {s: sum(p["source"] == s for p in data.pairs) for s in data.sources},
        "parameters": {
            "distillation": {k: getattr(distil, k) for k in ("OWN_WORD", "SMOOTHING", "RIDGE", "STEPS")},
            "training": {"steps": given.steps, **{k: getattr(contrast, k) for k in (
                "DIMS", "TEMPERATURE", "FIELDS", "SOURCE_PAIRS", "SOURCE_TOOLS", "EVERYDAY", "BATCH", "HARD", "RATE", "SCALAR_RATE", "SEED")}},
        },
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()},
        "checks": list(write.checks(raw)),
    }
    (given.out / "table.json").write_text(json.dumps(manifest, indent=2) + "\n")
    log(f"{given.out / 'table.bin'}: {len(raw)} bytes")


if __name__ == "__main__":
    main()
