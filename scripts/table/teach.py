"""What the teacher says: vectors of single pieces, of tools and of queries, kept in the work folder."""

import hashlib

import numpy as np

import network
import text
from words import words

TEXT_TOKENS = 40
CHUNK = 4096


def text_of(name, description):
    return f"{' '.join(words(name))}. {description}" if name else description


def embed(model, wanted, folder, log):
    """Teacher vectors of each (kind, texts), by the encoder in the folder `model`: `pieces`, `texts` of tools, and `queries`."""
    weights = network.read(model / "model.safetensors")
    name = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    lines = (model / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokenizer = text.Tokenizer(lines)
    found = []
    for kind, texts in wanted:
        parts = []
        for at in range(0, len(texts), CHUNK):
            part = texts[at : at + CHUNK]
            key = hashlib.sha256("\0".join([name, kind, str(TEXT_TOKENS), *part]).encode()).hexdigest()[:24]
            path = folder / f"{key}.npy"
            if not path.exists():
                if kind == "pieces":
                    lists = [[text.CLS, tokenizer.number[piece], text.SEP] for piece in part]
                else:
                    lists = [tokenizer.encode(line, TEXT_TOKENS) for line in part]
                    lists = [text.marked(pieces) for pieces in lists] if kind == "queries" else lists
                partial = path.with_suffix(".partial.npy")
                np.save(partial, network.encode(weights, lists))
                partial.rename(path)
            parts.append(np.load(path))
        found.append(np.concatenate(parts))
        log(f"teacher: {len(found)} of {len(wanted)}")
    return found
