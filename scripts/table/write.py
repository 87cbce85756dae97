"""The table as bytes. `crates/routing/src/semantic/table.rs` reads them and describes the format."""

import struct

import numpy as np

from contrast import FIELDS
from words import Pieces

MAGIC = b"CWTABLE1"


def quantise(table):
    """Rows as whole numbers from -127 to 127, and what one unit of each row is."""
    scale = np.maximum(np.abs(table).max(1), 1e-12) / np.float32(127)
    return np.rint(table / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def to_bytes(pieces, table, query_scalars, tool_scalars):
    rows, scale = quantise(table)
    # A common factor changes no cosine: the largest weight is 1.
    common = np.float32(1) / (scale * np.maximum(np.abs(query_scalars), np.abs(tool_scalars))).max()
    out = bytearray(MAGIC)
    out += struct.pack("<II", *rows.shape)
    out += np.array(FIELDS, "<f4").tobytes()
    out += (scale * query_scalars * common).astype("<f4").tobytes()
    out += (scale * tool_scalars * common).astype("<f4").tobytes()
    for piece in pieces:
        text = piece.removeprefix("##").encode("ascii")
        out.append(len(text) | (0x80 if piece.startswith("##") else 0))
        out += text
    out += rows.tobytes()
    return bytes(out)


def from_bytes(raw):
    """What `to_bytes` wrote: pieces, rows, weights of the query side and of the tool side."""
    if raw[:8] != MAGIC:
        raise ValueError("not a table")
    count, dims = struct.unpack_from("<II", raw, 8)
    at = 16 + 4 * len(FIELDS)
    query, tool = np.frombuffer(raw, "<f4", 2 * count, at).reshape(2, count)
    at += 8 * count
    pieces = []
    for _ in range(count):
        length = raw[at] & 0x7F
        text = raw[at + 1 : at + 1 + length].decode("ascii")
        pieces.append(("##" if raw[at] & 0x80 else "") + text)
        at += 1 + length
    return pieces, np.frombuffer(raw, np.int8, count * dims, at).reshape(count, dims), query, tool


CHECKED = (
    "open a pull request for the webhook branch",
    "getUserById: returns the user's PROFILE (JSON)",
    "what's the weather in Zürich on 2024-05-01?",
    "kubectl rollout restart of unhyphenatedlongwords",
    "天气 прогноз",
)
UNIT = 300


def checks(raw):
    """Queries with their pieces and vectors, so that another reader of the table can be compared with this one."""
    texts, rows, weights, _ = from_bytes(raw)
    pieces = Pieces(texts)
    for text in CHECKED:
        numbers = pieces.of_text(text)
        vector = (rows[numbers].astype(np.float64) * weights[numbers, None].astype(np.float64)).sum(0)
        vector *= UNIT / max(np.sqrt(np.square(vector).sum()), 1e-9)
        vector = np.clip(np.rint(vector), -127, 127).astype(int)
        yield {"query": text, "pieces": [texts[n] for n in numbers], "vector": vector[:16].tolist()}
