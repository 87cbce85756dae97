"""The vectors that `crates/encoder` is compared with: a forward pass in 64 bits, one text at a time.

    PYTHONPATH=scripts/encoder:scripts/table python3 scripts/encoder/reference.py crates/encoder/model/weights.bin \\
        crates/encoder/model crates/encoder/src/reference.json

Reads the texts of the last file, with their pieces by the reference implementation of the tokenizer, and writes it anew: each
text, its pieces, more than are read of a tool, and its vectors as a tool and as a query, in steps of 1/600.
"""

import argparse
import json
import pathlib

import numpy as np
import scipy.special

import network
import text

# A query is read up to so many pieces, a tool up to so many.
MOST, MOST_OF_TOOL, UNIT = 128, 64, 600


def vector(weights, pieces):
    """The direction of the mean of the last layer."""
    linear = lambda x, name: x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-12)
        return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    x = weights["embeddings.word_embeddings.weight"][pieces] + weights["embeddings.position_embeddings.weight"][: len(pieces)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
    size = network.WIDTH // network.HEADS
    for number in range(network.LAYERS):
        at = f"encoder.layer.{number}"
        query, key, value = (linear(x, f"{at}.attention.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for first in range(0, network.WIDTH, size):
            part = slice(first, first + size)
            shares = scipy.special.softmax(query[:, part] @ key[:, part].T / np.sqrt(size), axis=-1)
            heads.append(shares @ value[:, part])
        x = norm(x + linear(np.concatenate(heads, 1), f"{at}.attention.output.dense"), f"{at}.attention.output")
        inner = linear(x, f"{at}.intermediate.dense")
        inner = inner * scipy.special.ndtr(inner)
        x = norm(x + linear(inner, f"{at}.output.dense"), f"{at}.output")
    mean = x.mean(0)
    return np.clip(np.rint(mean * UNIT / np.linalg.norm(mean)), -127, 127).astype(int).tolist()


def main():
    arguments = argparse.ArgumentParser(prog="reference")
    arguments.add_argument("weights", type=pathlib.Path)
    arguments.add_argument("model", type=pathlib.Path, help="the folder with vocab.txt")
    arguments.add_argument("reference", type=pathlib.Path)
    given = arguments.parse_args()
    weights = {name: values.astype(np.float64) for name, values in network.read(given.weights).items()}
    tokenizer, rows = text.Tokenizer.of(given.model), []
    for line, as_tool, *_ in json.loads(given.reference.read_text(encoding="utf-8")):
        if tokenizer.encode(line, MOST) != as_tool:
            raise SystemExit(f"{line!r}: other pieces than those of the reference implementation")
        as_query = text.marked(tokenizer.encode(line, MOST - 1))
        shown = tokenizer.encode(line, MOST_OF_TOOL)
        rows.append([line, as_tool, vector(weights, shown), vector(weights, as_query)])
    written = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    given.reference.write_text(f"[\n{written}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
