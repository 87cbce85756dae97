"""An agent that is spoken with: a conversation of any length, and prompts so small that a model answers at once. What was said long
ago comes back when it is asked for: how well an event fits the question weighs more here than its age."""

import contextweaver_rs as cw
import home

SMALL = {
    "budgets": {"route": 350, "answer": 400},
    # The default trusts age more, as conversations with tools want it.
    "scoring": {"similarity": 0.6, "recency": 0.1, "kind": 0.2, "cost": 0.1},
    "policy": {"max_items_per_kind": 1000},
}


class Voice:
    """`model` takes a phase and a prompt, `call` the name of a tool."""

    def __init__(self, tools, model, call):
        self.router, self.model, self.call = cw.Router(tools), model, call
        self.chat = cw.ContextManager(config=SMALL)

    def hear(self, heard):
        """Answers one sentence. Three tools are offered; a model that chooses none of them just talks."""
        turn = f"t{len(self.chat)}"
        self.chat.ingest(turn, "user_turn", heard)
        route = self.router.route(heard, top_k=3)
        if not route.no_tool_fits:
            chosen = route.selected(self.model("route", self.chat.build_route_prompt(heard, route)))
            if chosen is not None:
                name = self.router.catalog[chosen].name
                self.chat.ingest(f"{turn}-call", "tool_call", f"{name}()", parent=turn)
                self.chat.ingest_tool_result(f"{turn}-call", self.call(name))
        answer = self.model("answer", self.chat.build("answer", heard))
        self.chat.ingest(f"{turn}-answer", "agent_msg", answer, parent=turn)
        return answer


def test():
    """After 150 turns of small talk the agent still knows the allergy, in a prompt of no more than 400 tokens."""
    shown = []

    def model(phase, prompt):
        shown.append(prompt)
        assert prompt.tokens <= prompt.budget, phase
        chooses = phase == "route" and "USER]\nSwitch on the lights" in prompt.prompt
        return "lights_climate:set_lights" if chooses else "Yes."

    agent = Voice(home.CATALOG, model, lambda name: home.run(name))
    agent.hear("My daughter Lea is allergic to hazelnuts.")
    for number in range(150):
        agent.hear(f"Thank you, that was story number {number}, tell me another one.")
    assert home.CALLED == [], "nobody asked for anything to be done"
    agent.hear("What is Lea allergic to? She wants a cake.")
    last = shown[-1]
    assert "allergic to hazelnuts" in str(last) and "She wants a cake" in str(last) and last.tokens <= 400
    agent.hear("Switch on the lights in the kitchen.")
    assert home.CALLED == [("set_lights", {})]
    whole = cw.count_tokens(agent.chat.session().export("lines"))
    print(f"a conversation of {whole:,} tokens, and at most {max(prompt.tokens for prompt in shown)} in a prompt")


if __name__ == "__main__":
    test()
