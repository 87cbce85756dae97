"""The training data: tools and query-tool pairs whose source states an open licence, and nothing else."""

import gzip
import json
import pathlib

from words import words

# What the scorecard's collections are made of. The shipped table must have seen none of it.
HELD_OUT = ["bfcl_synth", "metatool", "nestful", "sealtools", "toolalpaca"]
# Collections that are one source under two names are left out together.
TOGETHER = {"metatool": {"metatool", "metatool_multi"}}
LICENCES = {
    "apibench": "Apache-2.0 (gorilla APIBench)",
    "aws": "Apache-2.0 (botocore service descriptions)",
    "banking77": "CC-BY-4.0 (PolyAI banking77)",
    "bfcl_synth": "Apache-2.0 (Berkeley Function Calling Leaderboard)",
    "clinc": "CC-BY-3.0 (CLINC150)",
    "google": "Apache-2.0 (Google API descriptions)",
    "mcp": "MIT, Apache-2.0, BSD and ISC (catalogs of MCP servers)",
    "metatool": "MIT (MetaTool)",
    "metatool_multi": "MIT (MetaTool)",
    "nestful": "Apache-2.0 (IBM NESTFUL)",
    "sealtools": "Apache-2.0 (Seal-Tools)",
    "tldr": "CC-BY-4.0 (tldr-pages)",
    "toolalpaca": "Apache-2.0 (ToolAlpaca)",
    "wordnet": "WordNet licence (Princeton WordNet)",
}
# A description of fewer words is no sign that two tools are one.
TELLING_WORDS = 4
# Sources that are lists of many similar entries: this many of each are shown to the teacher.
TEACHER_TOOLS, TEACHER_QUERIES = 2500, 3000


def kept_apart():
    """The servers of the test collection `gold/everyday` and one more, by the names of their catalogs."""
    return (pathlib.Path(__file__).parent / "kept-apart.txt").read_text(encoding="utf-8").split()


def spread(entries, most):
    """At most `most` of `entries`, evenly spread."""
    return entries if len(entries) <= most else [entries[at * len(entries) // most] for at in range(most)]


def same(text):
    """What texts share that differ in case, punctuation and spacing only."""
    return " ".join(words(text))


def looks(tool):
    """Texts of which one is enough to take a tool of another source for this one."""
    whole, description = same(f"{tool['name']} {tool['description']}"), same(tool["description"])
    return {whole, description} if description.count(" ") + 1 >= TELLING_WORDS else {whole}


class Data:
    """Tools and pairs, without the sources `left_out` and without what others have in common with those."""

    def __init__(self, folder, left_out=()):
        gone = set().union(*(TOGETHER.get(name, {name}) for name in left_out))
        with gzip.open(folder / "tools.jsonl.gz", "rt", encoding="utf-8") as lines:
            tools = [json.loads(line) for line in lines]
        with gzip.open(folder / "pairs.jsonl.gz", "rt", encoding="utf-8") as lines:
            pairs = [json.loads(line) for line in lines]
        unclean = {tool for pair in pairs if not pair["clean_licence"] for tool in pair["tools"]}
        pairs = [pair for pair in pairs if pair["clean_licence"]]
        clean_sources = {pair["source"] for pair in pairs}
        gone_tools = set().union(*(looks(tool) for tool in tools if tool["source"] in gone))
        gone_queries = {same(pair["query"]) for pair in pairs if pair["source"] in gone}
        self.tools = {
            tool["tool"]: tool
            for tool in tools
            if tool["source"] in clean_sources - gone
            and tool["tool"] not in unclean
            and not (gone and looks(tool) & gone_tools)
        }
        self.pairs = [
            pair
            for pair in pairs
            if pair["source"] not in gone
            and all(tool in self.tools for tool in pair["tools"])
            and not (gone and same(pair["query"]) in gone_queries)
        ]
        self.sources = sorted({pair["source"] for pair in self.pairs})

    def teacher_texts(self):
        """(kind, texts) for the teacher, source by source: tools as (name, description), then queries as ("", query)."""
        for source in sorted({tool["source"] for tool in self.tools.values()}):
            tools = [tool for tool in self.tools.values() if tool["source"] == source]
            yield "texts", [(t["name"], t["description"]) for t in spread(tools, TEACHER_TOOLS)]
        for source in self.sources:
            queries = sorted({pair["query"] for pair in self.pairs if pair["source"] == source})
            yield "queries", [("", query) for query in spread(queries, TEACHER_QUERIES)]
