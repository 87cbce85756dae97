"""A review of a large change by two agents. The first reads the change through views and never whole; rules and secrets are taken care
of before a model sees anything. What it found goes to the second, an advisor, in a pack within a budget."""

import contextweaver_rs as cw

MASKED = {"firewall": {"secrets": "redact"}}


class Reviewer:
    """`model` takes the name of an agent and a text."""

    def __init__(self, model, rules):
        self.model, self.chat = model, cw.ContextManager(config=MASKED)
        for number, rule in enumerate(rules):
            self.chat.ingest(f"rule-{number}", "policy", rule)

    def read(self, change, looks):
        """Reads a change: a summary of all, and the parts that the selectors show. Each part is judged with the rules in sight."""
        self.chat.ingest("goal", "user_turn", "Review this change. Say what must not be merged.")
        self.chat.ingest("diff", "tool_call", "git_diff(base=main)", parent="goal")
        [whole] = self.chat.ingest_tool_result("diff", change).artifacts
        for number, selector in enumerate(looks):
            part = self.chat.view(whole.handle, selector)
            self.chat.ingest(f"part-{number}", "doc_snippet", f"{selector}\n{part.text}", parent="diff")
            said = self.model("reviewer", self.chat.build("interpret", "what must not be merged").prompt)
            self.chat.ingest(f"note-{number}", "agent_msg", said, parent=f"part-{number}")

    def ask(self, question, budget):
        """Asks an advisor, who has seen nothing, and is told what matters for the question."""
        pack = self.chat.handoff(question, budget=budget, audience="advisor")
        return pack, self.model("advisor", pack.text)


def change():
    """A diff of 400 files. One file takes a check away, and one holds a key."""
    file = "diff --git a/src/m{0}.py b/src/m{0}.py\n--- a/src/m{0}.py\n+++ b/src/m{0}.py\n@@ -1,4 +1,4 @@\n-VALUE = {0}\n+VALUE = {1}\n"
    files = [file.format(number, number + 1) for number in range(400)]
    files[217] += "-    verify_signature(request)\n+    # TODO verify_signature(request)\n"
    files[300] += '+AWS_KEY = "AKIA' + 'Q3EGZ7LJ5RTWPXNV"\n'
    return "".join(files)


def test():
    """The advisor is told of the check that is gone, of the rule, and of where both come from; nobody sees the key."""
    read = []

    def model(agent, text):
        read.append((agent, text))
        if agent == "advisor":
            return "Do not merge."
        return "Decided to block: src/m217.py no longer verifies the signature of a request." if "TODO" in text else "Nothing found yet."

    reviewer = Reviewer(model, ["Every request must be verified before it is answered.", "Never print keys."])
    reviewer.read(change(), ["grep:AWS_KEY", "grep:verify_signature"])
    pack, said = reviewer.ask("may this change be merged", budget=300)
    assert said == "Do not merge." and pack.tokens <= 300 and cw.count_tokens(pack.text) == pack.tokens
    assert "m217.py no longer verifies" in pack.text and "must be verified before" in pack.text
    assert all("AKIAQ3EG" not in text for _, text in read) and "AWS_KEY" in read[0][1]
    stated = [statement for section in pack.sections for statement in section["statements"]]
    assert any("note-1" in str(statement) for statement in stated), stated
    print(f"a change of {cw.count_tokens(change()):,} tokens; the advisor read {pack.tokens}")
    print(pack.text)


if __name__ == "__main__":
    test()
