"""Reports of an offline evaluation, shown so that a model cannot quote a figure which the data do not support. A summariser of one's own
stands in place of ours; the report itself stays whole, and reachable for whoever may read it."""

import json

import contextweaver_rs as cw

# An estimate rests on effectively so many samples at least.
ENOUGH = 200


def supported(content, media_type, tokens):
    """The summary of a report: each estimate beside the diagnostics that it rests on, or no estimate."""
    rows = json.loads(content)["policies"]
    lines = []
    for row in rows:
        support = f"effective samples {row['effective_samples']}, largest weight {row['max_weight']}"
        if row["effective_samples"] < ENOUGH:
            lines.append(f"{row['policy']}: too little support for an estimate ({support})")
        else:
            low, high = row["interval"]
            lines.append(f"{row['policy']}: value {row['value']} [{low}, {high}] ({support})")
    # What has no room is counted, never cut in the middle of a line.
    while cw.count_tokens("\n".join(lines)) > tokens - 20:
        lines.pop()
    return "\n".join([*lines, f"{len(lines)} of {len(rows)} policies shown"])


def prompt(report, question):
    """The prompt of a question about a report, and the conversation that holds the report."""
    chat = cw.ContextManager(summarizer=supported)
    chat.ingest("u1", "user_turn", question)
    chat.ingest("c1", "tool_call", "evaluate_policies()", parent="u1")
    chat.ingest_tool_result("c1", json.dumps(report))
    return chat.build("answer", question), chat


def report():
    """Sixty policies. Those that the log has hardly seen have the best values, as is usual."""
    def row(number):
        samples = 20 if number % 10 == 0 else 900 + number
        value = round(0.99 if samples < ENOUGH else 0.4 + number / 1000, 3)
        return {
            "policy": f"policy-{number}", "value": value, "interval": [round(value - 0.05, 3), round(value + 0.05, 3)],
            "effective_samples": samples, "max_weight": round(1000 / samples, 2), "trace": "x" * 60,
        }

    return {"policies": [row(number) for number in range(60)]}


def test():
    """No prompt has the value of a policy without support; the whole report can be viewed."""
    pack, chat = prompt(report(), "which policy is best?")
    assert "0.99" not in pack.prompt and "policy-0: too little support for an estimate" in pack.prompt
    assert "policy-1: value 0.401 [0.351, 0.451] (effective samples 901" in pack.prompt and "of 60 policies shown" in pack.prompt
    [whole] = chat.artifacts
    assert json.loads(chat.read(whole.handle)) == report()
    assert "0.99" in chat.view(whole.handle, "json_path:$.policies[0]").text
    # A report that is none is summarised by our summariser, and the record of the prompt says so.
    pack, _ = prompt({"rows": list(range(2000))}, "which policy is best?")
    assert any("hook summarizer: KeyError" in note for note in pack.stats["notes"]), pack.stats
    print(f"of {cw.count_tokens(json.dumps(report())):,} tokens the model read {pack.tokens}")


if __name__ == "__main__":
    test()
