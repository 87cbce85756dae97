"""FastMCP as a gateway: a proxy before the servers of a configuration, with its BM25 search transform.

Usage: proxy.py CONFIG
"""

import json
import sys
from importlib import metadata

if "--version" in sys.argv[1:]:
    print(metadata.version("fastmcp"))
    sys.exit()

from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform

with open(sys.argv[1], encoding="utf-8") as file:
    config = json.load(file)
server = create_proxy(config, name="catalog")
names = "\n".join
server.add_transform(BM25SearchTransform(max_results=100, search_result_serializer=lambda found: names(t.name for t in found)))
server.run(show_banner=False)
