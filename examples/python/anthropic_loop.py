"""A plain loop over the client of Anthropic: the model sees the tools that fit the question, and large results come as
summaries that it can look into."""

import anthropic
import contextweaver_rs as cw
import home

VIEW = {
    "name": "view",
    "description": "Look into a result that was summarised. Selectors: grep:WORD, lines:0..20, json_path:$.a",
    "input_schema": {
        "type": "object",
        "properties": {"handle": {"type": "string"}, "selector": {"type": "string"}},
        "required": ["handle", "selector"],
    },
}


def answer(client, router, call, question, model="claude-sonnet-5"):
    """Asks until the model answers. `call` takes the name and the arguments of a tool."""
    firewall = cw.Firewall()
    route = router.route(question, top_k=5)
    ids = route.call_names("anthropic")
    tools = [*route.as_tools("anthropic"), VIEW]
    messages = [{"role": "user", "content": question}]
    while True:
        reply = client.messages.create(model=model, max_tokens=1000, messages=messages, tools=tools)
        messages.append({"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in reply.content]})
        if reply.stop_reason != "tool_use":
            return "".join(part.text for part in reply.content if part.type == "text")
        results = []
        for request in (part for part in reply.content if part.type == "tool_use"):
            try:
                if request.name == "view":
                    text = firewall.view(request.input["handle"], request.input["selector"]).text
                elif request.name in ids:
                    tool, arguments = router.catalog.resolve_call("anthropic", request.name, request.input)
                    result = call(router.catalog[tool].name, arguments)
                    text = firewall.compact(result, call=request.id, name=request.name).for_model
                else:
                    text = f"no tool is called {request.name}"
            except (cw.ContextweaverError, KeyError, TypeError) as error:
                # Models leave out arguments.
                text = f"{type(error).__name__}: {error}"
            results.append({"type": "tool_result", "tool_use_id": request.id, "content": text})
        messages.append({"role": "user", "content": results})


def test():
    """Of 97 tools the model sees six; 3 001 transactions cost it a summary and one line."""
    handle = "artifact:result:toolu_1"
    script = home.Script(
        ("list_transactions", {"account_id": "main"}),
        ("view", {"handle": handle, "selector": "grep:landlord"}),
        "You paid 900 euros.",
    )
    asked = []
    with home.serve(script, asked) as address:
        client = anthropic.Anthropic(base_url=address, api_key="none")
        call = lambda name, arguments: home.run(name, **arguments)
        said = answer(client, cw.Router(home.CATALOG), call, "which transactions went to the landlord this year")
    assert said == "You paid 900 euros." and home.CALLED == [("list_transactions", {"account_id": "main"})]
    assert all(len(names) == 6 and "list_transactions" in names for names in script.offered)
    results = [part for message in asked[-1]["messages"] if message["role"] == "user" for part in message["content"]]
    summary, line = (part["content"] for part in results if isinstance(part, dict))
    assert handle in summary and line == "3000: 2026-11-01  landlord  -900.00 EUR"
    whole = cw.count_tokens(home.run("list_transactions"))
    print(f"the result has {whole} tokens, and the model read {cw.count_tokens(summary + line)} of it\n{said}")


if __name__ == "__main__":
    test()
