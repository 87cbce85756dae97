"""FastMCP: its BM25 search transform, asked by its own client through a server in this process."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import protocol

import asyncio

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool


LIMIT = 100


def build(tools):
    # Its tools are known by their names alone.
    ids, server = {}, FastMCP("catalog")
    for tool, name in zip(tools, protocol.names(tools)):
        ids[name] = tool["id"]
        schema = tool.get("inputSchema") or {"type": "object"}
        server.add_tool(Tool(name=name, description=tool.get("description"), parameters=schema))
    server.add_transform(
        BM25SearchTransform(max_results=LIMIT, search_result_serializer=lambda found: "\n".join(t.name for t in found))
    )
    loop = asyncio.new_event_loop()
    client = Client(server)
    loop.run_until_complete(client.__aenter__())

    def search(query, k):
        result = loop.run_until_complete(client.call_tool("search_tools", {"query": query}))
        names = result.content[0].text.split("\n") if result.content else []
        return [(ids[name], None) for name in names if name][:k]

    search("warm up", 1)
    return search


protocol.serve("fastmcp", build)
