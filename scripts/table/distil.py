"""The table before it sees a pair: which pieces it has, and vectors fitted to the teacher's."""

import collections
import re

import numpy as np

from words import Pieces, words

PIECES = 14_700
# A word that the teacher writes in several pieces gets a vector of its own when this many tools and queries have it.
OWN_WORD = 12
SMOOTHING = 1e-3
RIDGE = 1.0
STEPS = 12


def candidates(vocabulary, counts):
    """Pieces of the teacher in its order, and frequent words that it lacks."""
    known = [piece for piece in vocabulary if re.fullmatch(r"(##)?[a-z]+|(##)?[0-9]", piece)]
    have = set(known)
    own = [word for word, count in counts.items() if count >= OWN_WORD and word not in have and word.isalpha()]
    return known, sorted(own)


def count_words(texts):
    counts = collections.Counter()
    for text in texts:
        counts.update(set(words(text)))
    return counts


def choose(vocabulary, counts):
    """The pieces of the table: single characters, frequent words, pieces in use, then the teacher's order."""
    known, own = candidates(vocabulary, counts)
    everything = Pieces(known + own)
    used = collections.Counter()
    for word, count in counts.items():
        for number in everything.of_word(word):
            used[everything.pieces[number]] += count
    place = {piece: at for at, piece in enumerate(vocabulary)}
    single = [piece for piece in known if len(piece.removeprefix("##")) == 1]
    rest = [piece for piece in known + own if len(piece.removeprefix("##")) > 1]
    rest.sort(key=lambda piece: (-min(used[piece], 3), place.get(piece, 0), piece))
    kept = sorted(single + rest[: PIECES - len(single)])
    return kept


def project(sentences, dims):
    """Mean and PCA of sentence vectors, each direction divided by the root of its deviation (half whitening)."""
    mean = sentences.mean(0, dtype=np.float64)
    centred = sentences.astype(np.float64) - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    order = np.argsort(-values, kind="stable")[:dims]
    vectors = vectors[:, order]
    # The sign of an eigenvector is arbitrary: the largest part of each is positive.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(0), np.arange(dims)])
    return mean.astype(np.float32), (vectors / values[order] ** 0.25).astype(np.float32)


class Bags:
    """Texts as weighted sums of table rows."""

    def __init__(self, lists, size):
        lengths = np.array([len(pieces) for pieces in lists])
        self.rows, self.size = len(lists), size
        self.columns = np.array([piece for pieces in lists for piece in pieces], np.int64)
        self.owner = np.repeat(np.arange(self.rows), lengths)
        self.values = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths).astype(np.float32)
        order = np.argsort(self.columns, kind="stable")
        self.by_column = (self.columns[order], self.owner[order], self.values[order])

    @staticmethod
    def _sum(keys, take, values, source, count):
        """out[key] += value * source[take], keys ascending, in chunks that keep a key together."""
        out = np.zeros((count, source.shape[1]), np.float32)
        at, step = 0, 65536
        while at < len(keys):
            end = min(len(keys), at + step)
            while end < len(keys) and keys[end] == keys[end - 1]:
                end += 1
            part = keys[at:end]
            starts = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
            gathered = source[take[at:end]]
            gathered *= values[at:end, None]
            out[part[starts]] = np.add.reduceat(gathered, starts, axis=0)
            at = end
        return out

    def times(self, table):
        return self._sum(self.owner, self.columns, self.values, table, self.rows)

    def transposed(self, matrix):
        columns, owner, values = self.by_column
        return self._sum(columns, owner, values, matrix, self.size)


def frequency_weights(lists, size):
    """a / (a + p) of every piece (smooth inverse frequency)."""
    counts = np.bincount(np.array([piece for pieces in lists for piece in pieces]), minlength=size)
    return (SMOOTHING / (SMOOTHING + (counts + 0.5) / counts.sum())).astype(np.float32)


def fit(lists, targets, start, log):
    """Table rows near `start` whose sums come near `targets`: ridge regression by conjugate gradients."""
    bags = Bags(lists, len(start))
    guess = bags.times(start)
    scale = np.float32((guess * targets).sum(dtype=np.float64) / np.square(guess).sum(dtype=np.float64))
    start = start * scale
    residual = bags.transposed(targets - guess * scale)
    change = np.zeros_like(start)
    direction = residual.copy()
    norm = np.square(residual).sum(0, dtype=np.float64)
    for step in range(STEPS):
        image = bags.transposed(bags.times(direction)) + np.float32(RIDGE) * direction
        length = norm / np.maximum((direction * image).sum(0, dtype=np.float64), 1e-12)
        change += direction * length.astype(np.float32)
        residual -= image * length.astype(np.float32)
        after = np.square(residual).sum(0, dtype=np.float64)
        direction = residual + direction * (after / np.maximum(norm, 1e-12)).astype(np.float32)
        norm = after
    left = np.square(targets - bags.times(start + change)).sum(dtype=np.float64)
    log(f"ridge: {1 - left / np.square(targets).sum(dtype=np.float64):.3f} of the teacher's variance")
    return start + change
