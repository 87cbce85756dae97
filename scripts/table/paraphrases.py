"""Requests that are drawn from what people say for what tools call otherwise: `gold/training/paraphrases.jsonl`.

A row says that people say `said` where tools say `means`. It is a request for every tool whose name has all the words of
`means`, and for every request that a model put in those words.
"""

import json

from words import words


class Paraphrases:
    """The rows of a file; without a file there are none, and nothing is drawn."""

    def __init__(self, path):
        lines = path.read_text(encoding="utf-8").splitlines() if path else []
        rows = [json.loads(line) for line in lines]
        self.rows = [(row["said"], frozenset(stems(row["means"]))) for row in rows]

    def of_tool(self, name):
        """What people say for a tool of this name."""
        own = frozenset(stems(name))
        return [said for said, means in self.rows if means <= own]

    def of_request(self, asked):
        """`asked` in the words of people, once for each row whose words are in it: what they say, then the rest."""
        found = []
        for said, means in self.rows:
            if means <= frozenset(stems(asked)):
                rest = [word for word in words(asked) if not set(stems(word)) & means]
                found.append(" ".join([said, *rest]))
        return found


def stems(text):
    """Words with the endings off that names and requests differ in."""
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words(text)]
