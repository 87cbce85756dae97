"""FastMCP: a middleware for a server of many tools. Clients are listed one that finds tools and one that looks into results;
every tool can still be called by its name, and large results come as summaries."""

import asyncio

import contextweaver_rs as cw
import home
from fastmcp import Client, FastMCP
from fastmcp.server.middleware import Middleware
from fastmcp.tools import Tool, ToolResult

OWN = {"find_tools", "view"}


class Shortlist(Middleware):
    """Lists its own tools alone, and keeps large results."""

    def __init__(self, server, top_k=5):
        self.server, self.top_k = server, top_k
        self.firewall, self.router, self.known = cw.Firewall(), None, None
        server.tool(self.find_tools)
        server.tool(self.view)

    async def find_tools(self, query: str) -> list[dict]:
        """Find the tools of this server for what should be done. Gives their whole definitions."""
        tools = [tool.to_mcp_tool() for tool in await self.server.list_tools(run_middleware=False) if tool.name not in OWN]
        if self.known != [tool.name for tool in tools]:
            self.router, self.known = cw.Router(tools), [tool.name for tool in tools]
        return self.router.route(query, self.top_k).as_tools("mcp")

    async def view(self, handle: str, selector: str) -> str:
        """Look into a result that was summarised. Selectors: grep:WORD, lines:0..20, json_path:$.a"""
        return self.firewall.view(handle, selector).text

    async def on_list_tools(self, context, call_next):
        return [tool for tool in await call_next(context) if tool.name in OWN]

    async def on_call_tool(self, context, call_next):
        result = await call_next(context)
        if context.message.name in OWN:
            return result
        kept = self.firewall.compact({"content": result.content}, name=context.message.name)
        return ToolResult(content=kept.for_model)


class HomeTool(Tool):
    """A tool of the home as FastMCP holds it."""

    async def run(self, arguments):
        return ToolResult(content=home.run(self.name, **arguments))


def test():
    server = FastMCP("home")
    for one in home.TOOLS:
        server.add_tool(HomeTool(name=one["name"], description=one["description"], parameters=one["inputSchema"]))
    server.add_middleware(Shortlist(server))

    async def ask():
        async with Client(server) as client:
            assert {tool.name for tool in await client.list_tools()} == OWN
            found = (await client.call_tool("find_tools", {"query": "transactions with the landlord"})).data
            assert len(found) <= 5 and "list_transactions" in [tool["name"] for tool in found]
            summary = (await client.call_tool("list_transactions", {"account_id": "main"})).content[0].text
            assert cw.count_tokens(summary) < 400 and "artifact:result:1" in summary
            return (await client.call_tool("view", {"handle": "artifact:result:1", "selector": "grep:landlord"})).data

    line = asyncio.run(ask())
    assert line == "3000: 2026-11-01  landlord  -900.00 EUR" and len(home.CALLED) == 1
    print(f"of {len(home.TOOLS)} tools the client is listed {' and '.join(sorted(OWN))}\n{line}")


if __name__ == "__main__":
    test()
