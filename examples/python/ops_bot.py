"""A bot for operations: a conversation of its own for each incident, kept in a store; logs of any length; and a memory of what
several incidents have in common, which the next one begins with. It offers no tool that destroys anything."""

import json
import pathlib
import tempfile

import contextweaver_rs as cw
import home

CATALOG = home.HOUSEHOLD.parents[1] / "workbench/catalog.json"


class Bot:
    """`model` takes a phase and a prompt, `call` a tool and its arguments. Everything that is kept lies in `folder`."""

    def __init__(self, folder, model, call):
        self.folder, self.model, self.call = pathlib.Path(folder), model, call
        self.router, self.memory = cw.Router(CATALOG), self.folder / "memory.json"

    def incident(self, name, question):
        """Answers a question about an incident. Asked again under the same name, it goes on where it stopped."""
        chat = cw.ContextManager(self.folder / f"{name}.db", memory=self.memory if self.memory.exists() else None)
        turn = f"t{len(chat)}"
        chat.ingest(turn, "user_turn", question)
        route = self.router.route(question, no_destructive=True)
        chosen = route.selected(self.model("route", chat.build_route_prompt(question, route)))
        if chosen is None:
            return "None of the tools fits."
        tool = self.router.catalog[chosen]
        arguments = self.model("call", chat.build_call_prompt(question, chosen, tool.definition))
        chat.ingest(f"{turn}-call", "tool_call", f"{tool.name}({arguments})", parent=turn)
        result = chat.ingest_tool_result(f"{turn}-call", self.call(tool.name, json.loads(arguments)))
        if result.is_compacted:
            selector = self.model("interpret", chat.build("interpret", question))
            part = chat.view(result.artifacts[0].handle, selector)
            chat.ingest(f"{turn}-part", "doc_snippet", part.text, parent=f"{turn}-call")
        answer = self.model("answer", chat.build("answer", question))
        chat.ingest(f"{turn}-answer", "agent_msg", answer, parent=turn)
        return answer

    def learn(self, name, **facts):
        """Writes down what an incident has shown, and makes the memory anew of all incidents."""
        chat = cw.ContextManager(self.folder / f"{name}.db")
        for key, value in facts.items():
            chat.add_fact(key, value)
        cw.consolidate(sorted(self.folder.glob("*.db"))).save(self.memory)


def test():
    """What two incidents agree on stands in the first prompt of the third, whose log has 20,000 lines."""
    lines = [f"2026-11-24T10:{at // 60 % 60:02}:{at % 60:02} INFO request {at} served" for at in range(20_000)]
    lines[13_000] = "2026-11-24T10:36:40 ERROR checkout: migration 0042 waits for a lock of session 77"
    log, shown = "\n".join(lines), []
    said = {"route": "monitor:get_logs", "call": '{"query": "checkout"}', "interpret": "grep:ERROR", "answer": "Session 77 holds a lock."}

    def model(phase, prompt):
        shown.append((phase, prompt))
        return said[phase]

    with tempfile.TemporaryDirectory() as folder:
        bot = Bot(folder, model, lambda tool, arguments: log)
        for name, part in (("monday", "checkout"), ("tuesday", "the basket")):
            bot.incident(name, f"search the logs for what broke {part}")
            bot.learn(name, owner="team payments", runbook="end the session that holds the lock")
        shown.clear()
        answer = bot.incident("friday", "checkout is slow again, search the logs; who is the owner?")
        assert answer == "Session 77 holds a lock." and [phase for phase, _ in shown] == ["route", "call", "interpret", "answer"]
        assert all(prompt.tokens <= prompt.budget for _, prompt in shown)
        last = str(shown[-1][1])
        assert "owner: team payments" in last and "migration 0042 waits" in last and "request 12999 served" not in last
        again = bot.incident("friday", "search the logs once more")
        assert again == answer and "is slow again" in str(shown[-1][1])
        print(f"a log of {cw.count_tokens(log):,} tokens, and at most {max(prompt.tokens for _, prompt in shown):,} in a prompt")


if __name__ == "__main__":
    test()
