"""A Python client of a gateway, driven by `scripts/conformance`.

    python_client.py session|client|fastmcp http URL
    python_client.py session|client|fastmcp stdio COMMAND ARGS…

Prints one line about the server and the names of its tools, then reads calls (`{"name": …, "arguments": …}`) line by
line and prints `{"text": …, "error": …}` for each, until its input ends.
"""

import asyncio
import contextlib
import json
import sys

import fastmcp
import mcp
from fastmcp.client.transports import StdioTransport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


@contextlib.asynccontextmanager
async def session(transport, target):
    if transport == "http":
        streams = streamable_http_client(target[0])
    else:
        streams = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with streams as (reading, writing, *_), mcp.ClientSession(reading, writing) as client:
        info = await client.initialize()
        yield client, info.protocol_version, lambda name, arguments: client.call_tool(name, arguments)


@contextlib.asynccontextmanager
async def client(transport, target):
    server = target[0] if transport == "http" else StdioServerParameters(command=target[0], args=target[1:])
    async with mcp.Client(server) as client:
        yield client, client.protocol_version, lambda name, arguments: client.call_tool(name, arguments)


@contextlib.asynccontextmanager
async def of_fastmcp(transport, target):
    server = target[0] if transport == "http" else StdioTransport(command=target[0], args=target[1:])
    async with fastmcp.Client(server) as client:
        yield client, client.protocol_version, lambda name, arguments: client.call_tool(name, arguments, raise_on_error=False)


KINDS = {"session": session, "client": client, "fastmcp": of_fastmcp}


def say(message):
    print(json.dumps(message), flush=True)


async def main(kind, transport, *target):
    async with KINDS[kind](transport, list(target)) as (client, version, call):
        listed = await client.list_tools()
        say({"version": version, "tools": [tool.name for tool in getattr(listed, "tools", listed)]})
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            result = await call(request["name"], request["arguments"])
            say({"text": result.content[0].text, "error": result.is_error})


asyncio.run(main(*sys.argv[1:]))
