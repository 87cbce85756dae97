"""Tantivy: one text field with the English stemmer, an index in memory, and its lenient query parser."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

import re

import tantivy


def build(tools):
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    schema.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for tool in tools:
        writer.add_document(tantivy.Document(id=tool["id"], text=protocol.text(tool)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query, k):
        # Words alone: what else a user types is not an operator.
        plain = " ".join(re.findall(r"\w+", query.lower()))
        if not plain:
            return []
        parsed, _ = index.parse_query_lenient(plain, ["text"])
        hits = searcher.search(parsed, limit=len(tools)).hits
        found = [(searcher.doc(address)["id"][0], score) for score, address in hits[: 2 * k]]
        return protocol.best((id for id, _ in found), (score for _, score in found), k)

    return search


protocol.serve("tantivy", build)
