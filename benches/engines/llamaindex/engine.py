"""LlamaIndex: ObjectIndex over function tools, with its vector store in memory and all-MiniLM-L6-v2."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.objects import ObjectIndex
from llama_index.core.tools import FunctionTool
from pydantic import PrivateAttr

from minilm import MiniLm


class Embedding(BaseEmbedding):
    _model: MiniLm = PrivateAttr(default_factory=MiniLm)

    def _get_text_embedding(self, text):
        return self._model.embed([text])[0].tolist()

    def _get_text_embeddings(self, texts):
        return self._model.embed(texts).tolist()

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def answering(id):
    # A function without parameters: the index reads the schema of each, and a default value in it would be read as well.
    def answer():
        return id

    return answer


def build(tools):
    # Its tools are known by their names alone. The id is what a tool does.
    functions = []
    for tool, name in zip(tools, protocol.names(tools)):
        text = protocol.sentence(tool)
        functions.append(FunctionTool.from_defaults(fn=answering(tool["id"]), name=name, description=text))
    index = ObjectIndex.from_objects(functions, index_cls=VectorStoreIndex, embed_model=Embedding(embed_batch_size=512))

    def search(query, k):
        found = index.as_retriever(similarity_top_k=k).retrieve(query)
        return [(tool.fn(), None) for tool in found]

    return search


protocol.serve("llama-index-core", build)
