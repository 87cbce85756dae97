"""The four phases of an agent's loop, each with a prompt of its own: the tools to choose from, the schema of the chosen one, what
came back, and the whole conversation. No prompt exceeds its budget, and no framework is needed."""

import json

import contextweaver_rs as cw
import home


def answer(model, router, call, question):
    """Asks the model four times. `model` takes a phase and a prompt, `call` the name and the arguments of a tool."""
    conversation = cw.ContextManager()
    conversation.ingest("u1", "user_turn", question)

    # Route: the model sees cards, and chooses one by id.
    route = router.route(question)
    said = model("route", conversation.build_route_prompt(question, route))
    chosen = route.selected(said)
    if chosen is None:
        return f"no tool of those that were offered is `{said}`"

    # Call: the model sees the definition of this tool alone, and writes the arguments.
    tool = router.catalog[chosen]
    arguments = model("call", conversation.build_call_prompt(question, chosen, tool.definition))
    conversation.ingest("c1", "tool_call", f"{tool.name}({arguments})", parent="u1")
    result = conversation.ingest_tool_result("c1", call(tool.name, json.loads(arguments)))

    # Interpret: of a large result the model sees a summary, and asks for the part that it wants.
    if result.is_compacted:
        selector = model("interpret", conversation.build("interpret", question))
        part = conversation.view(result.artifacts[0].handle, selector)
        conversation.ingest("d1", "doc_snippet", part.text, parent="c1")

    # Answer: the model sees the conversation so far.
    return model("answer", conversation.build("answer", question))


class Model:
    """Stands for a model: it keeps what it is shown, and says the next line of its script."""

    def __init__(self, *script):
        self.script, self.prompts = list(script), {}

    def __call__(self, phase, prompt):
        self.prompts[phase] = prompt
        return self.script.pop(0)


def test():
    """Of 97 tools and 3 001 transactions the model reads four short prompts."""
    model = Model("bank:list_transactions", '{"account_id": "main"}', "grep:landlord", "You paid 900 euros.")
    router, call = cw.Router(home.CATALOG), lambda name, arguments: home.run(name, **arguments)
    said = answer(model, router, call, "which transactions went to the landlord this year")
    assert said == "You paid 900 euros." and home.CALLED == [("list_transactions", {"account_id": "main"})]
    shown = model.prompts
    assert list(shown) == ["route", "call", "interpret", "answer"] and all(one.tokens <= one.budget for one in shown.values())
    assert 0 < shown["route"].cards_shown <= 10 and '"counterparty"' in str(shown["call"])
    assert "artifact:result:c1" in str(shown["interpret"]) and "3000: 2026-11-01  landlord  -900.00 EUR" in str(shown["answer"])
    for phase, prompt in shown.items():
        print(f"{phase}: {prompt.tokens} tokens")
    print(said)


if __name__ == "__main__":
    test()
