"""MiniLM-L6 in JAX: weights in, piece numbers in, the direction of the mean of the last layer out."""

import json
import os
import struct

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, HEADS, WIDTH, NET = 6, 12, 384, 1536
# Texts of a chunk have one length, so that few programs are compiled.
LENGTHS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
CHUNK_PIECES = 1536


def read(path):
    """The arrays of a safetensors file; those in bytes are multiplied by their scales."""
    raw = open(path, "rb").read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    kinds = {"F32": np.float32, "I8": np.int8, "F16": np.float16}
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in kinds:
            continue
        start, end = entry["data_offsets"]
        values = np.frombuffer(raw[8 + length + start : 8 + length + end], kinds[entry["dtype"]])
        arrays[name.removeprefix("bert.")] = values.reshape(entry["shape"])
    for name in [name for name in arrays if name.endswith(".scale")]:
        of = name.removesuffix(".scale")
        arrays[of] = arrays[of].astype(np.float32) * arrays.pop(name)[:, None]
    return {name: np.array(values, np.float32) for name, values in arrays.items() if not name.startswith("pooler")}


def write(path, arrays):
    """Writes a safetensors file, arrays in the order of their names."""
    kinds = {np.dtype(np.float32): "F32", np.dtype(np.int8): "I8"}
    header, at = {}, 0
    for name in sorted(arrays):
        size = arrays[name].nbytes
        header[name] = {
            "dtype": kinds[arrays[name].dtype], "shape": list(arrays[name].shape), "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = f"{path}.partial"
    with open(partial, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(arrays):
            file.write(np.ascontiguousarray(arrays[name]).tobytes())
    os.replace(partial, path)


def _norm(x, weights, name):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-12)
    return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def _linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def states(weights, pieces, lengths, layers=LAYERS):
    """`pieces` [texts, length] and `lengths` [texts] -> the last layer's state of each piece [texts, length, width], and which
    pieces are there [texts, length]."""
    count, length = pieces.shape
    here = jnp.arange(length)[None, :] < lengths[:, None]
    x = weights["embeddings.word_embeddings.weight"][pieces]
    x = x + weights["embeddings.position_embeddings.weight"][:length]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = _norm(x, weights, "embeddings").reshape(-1, WIDTH)
    size = WIDTH // HEADS
    split = lambda x: x.reshape(count, length, HEADS, size).transpose(0, 2, 1, 3)
    hidden = jnp.where(here, 0.0, -1e9)[:, None, None, :]
    for number in range(layers):
        at = f"encoder.layer.{number}"
        q, k, v = (split(_linear(x, weights, f"{at}.attention.self.{part}")) for part in ("query", "key", "value"))
        share = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) * size**-0.5 + hidden, -1)
        attended = (share @ v).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        x = _norm(x + _linear(attended, weights, f"{at}.attention.output.dense"), weights, f"{at}.attention.output")
        inner = jax.nn.gelu(_linear(x, weights, f"{at}.intermediate.dense"), approximate=False)
        x = _norm(x + _linear(inner, weights, f"{at}.output.dense"), weights, f"{at}.output")
    return x.reshape(count, length, WIDTH), here


def forward(weights, pieces, lengths):
    """`pieces` [texts, length] and `lengths` [texts] -> unit vectors."""
    x, here = states(weights, pieces, lengths)
    x = (x * here[:, :, None]).sum(1) / lengths[:, None]
    return x / (jnp.linalg.norm(x, axis=1, keepdims=True) + 1e-9)


def chunks(lists, pieces=CHUNK_PIECES):
    """Texts of about one length together: (their places, piece numbers, lengths). There is one number of texts for each
    length, so that few programs are compiled; rows that are left over hold shorter texts."""
    order = sorted(range(len(lists)), key=lambda at: (-len(lists[at]), at))
    at = 0
    while at < len(order):
        wide = next(size for size in LENGTHS if size >= len(lists[order[at]]))
        rows = pieces // wide
        part = order[at : at + rows]
        at += rows
        numbers = np.zeros((rows, wide), np.int32)
        lengths = np.ones(rows, np.int32)
        for row, place in enumerate(part):
            numbers[row, : len(lists[place])] = lists[place]
            lengths[row] = len(lists[place])
        yield part, numbers, lengths


_forward = jax.jit(forward)


def encode(weights, lists):
    """Unit vectors of piece lists."""
    found = np.empty((len(lists), WIDTH), np.float32)
    weights = {name: jnp.asarray(values) for name, values in weights.items()}
    for part, numbers, lengths in chunks(lists):
        found[part] = np.asarray(_forward(weights, numbers, lengths))[: len(part)]
    return found


def _with_way_back(weights, numbers, lengths):
    return jax.vjp(lambda weights: forward(weights, numbers, lengths), weights)


there = jax.jit(_with_way_back)
back = jax.jit(lambda way, gradient: way(gradient)[0])
add = jax.jit(lambda one, other: jax.tree.map(jnp.add, one, other), donate_argnums=0)
