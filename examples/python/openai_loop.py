"""A plain loop over the client of OpenAI: the model sees the tools that fit the question, and large results come as
summaries that it can look into."""

import json

import contextweaver_rs as cw
import home
import openai

VIEW = {
    "type": "function",
    "function": {
        "name": "view",
        "description": "Look into a result that was summarised. Selectors: grep:WORD, lines:0..20, json_path:$.a",
        "parameters": {
            "type": "object",
            "properties": {"handle": {"type": "string"}, "selector": {"type": "string"}},
            "required": ["handle", "selector"],
        },
    },
}


def answer(client, router, call, question, model="gpt-5"):
    """Asks until the model answers. `call` takes the name and the arguments of a tool."""
    firewall = cw.Firewall()
    route = router.route(question, top_k=5)
    ids = route.call_names("openai")
    tools = [*route.as_tools("openai"), VIEW]
    messages = [{"role": "user", "content": question}]
    while True:
        reply = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        if not reply.tool_calls:
            return reply.content
        for request in reply.tool_calls:
            name = request.function.name
            try:
                arguments = json.loads(request.function.arguments)
                if name == "view":
                    text = firewall.view(arguments["handle"], arguments["selector"]).text
                elif name in ids:
                    tool, arguments = router.catalog.resolve_call("openai", name, arguments)
                    result = call(router.catalog[tool].name, arguments)
                    text = firewall.compact(result, call=request.id, name=name).for_model
                else:
                    text = f"no tool is called {name}"
            except (cw.ContextweaverError, ValueError, KeyError, TypeError) as error:
                # Models write arguments that are cut off, or lack one.
                text = f"{type(error).__name__}: {error}"
            messages.append({"role": "tool", "tool_call_id": request.id, "content": text})


def test():
    """Of 97 tools the model sees six; 3 001 transactions cost it a summary and one line."""
    handle = "artifact:result:call_1"
    script = home.Script(
        ("list_transactions", {"account_id": "main"}),
        ("view", {"handle": handle, "selector": "grep:landlord"}),
        "You paid 900 euros.",
    )
    asked = []
    with home.serve(script, asked) as address:
        client = openai.OpenAI(base_url=address, api_key="none")
        call = lambda name, arguments: home.run(name, **arguments)
        said = answer(client, cw.Router(home.CATALOG), call, "which transactions went to the landlord this year")
    assert said == "You paid 900 euros." and home.CALLED == [("list_transactions", {"account_id": "main"})]
    assert all(len(names) == 6 and "list_transactions" in names for names in script.offered)
    summary, line = (message["content"] for message in asked[-1]["messages"] if message["role"] == "tool")
    assert handle in summary and line == "3000: 2026-11-01  landlord  -900.00 EUR"
    whole = cw.count_tokens(home.run("list_transactions"))
    print(f"the result has {whole} tokens, and the model read {cw.count_tokens(summary + line)} of it\n{said}")


if __name__ == "__main__":
    test()
