"""Reports of an offline evaluation, shown so that a model cannot quote a figure which the data do not support. What a model must not read
does not become an event: the program shapes each report first, and keeps the whole of it where no prompt and no view reaches."""

import json

import contextweaver_rs as cw

# An estimate rests on effectively so many samples at least.
ENOUGH = 200


def supported(report, tokens):
    """A report for a model: each estimate beside what supports it, or no estimate. The best supported come first."""
    try:
        lines = [line(row) for row in sorted(report["policies"], key=lambda row: -row["effective_samples"])]
    except (KeyError, TypeError, ValueError) as error:
        # Nothing of a report that is not understood is shown.
        return f"The report cannot be read ({type(error).__name__}); no figure of it is shown."
    all_of_them = len(lines)
    # What has no room is counted, never cut in the middle of a line.
    while cw.count_tokens("\n".join(lines)) > tokens - 20:
        lines.pop()
    return "\n".join([*lines, f"{len(lines)} of {all_of_them} policies shown, by effective samples"])


def line(row):
    """What is said of one policy."""
    support = f"effective samples {row['effective_samples']}, largest weight {row['max_weight']}"
    if row["effective_samples"] < ENOUGH:
        return f"{row['policy']}: too little support for an estimate ({support})"
    low, high = row["interval"]
    return f"{row['policy']}: value {row['value']} [{low}, {high}] ({support})"


class Reports:
    """A conversation about reports, and the reports themselves, by call."""

    def __init__(self):
        self.chat, self.whole = cw.ContextManager(), {}

    def read(self, call, report, tokens=300):
        self.chat.ingest(call, "tool_call", "evaluate_policies()")
        self.chat.ingest_tool_result(call, supported(report, tokens))
        self.whole[call] = report


def report(policies):
    """Those that the log has hardly seen have the best values, as is usual."""
    def row(number):
        samples = 20 if number % 10 == 0 else 900 + number
        value = round(0.99 if samples < ENOUGH else 0.4 + number / 1000, 3)
        interval = [round(value - 0.05, 3), round(value + 0.05, 3)]
        support = {"effective_samples": samples, "max_weight": round(1000 / samples, 2)}
        return {"policy": f"policy-{number}", "value": value, "interval": interval, **support, "trace": "x" * 60}

    return {"policies": [row(number) for number in range(policies)]}


def test():
    """Of a long report, a short one and one of another form no prompt has a value without support."""
    reports, odd = Reports(), report(60)
    del odd["policies"][0]["interval"], odd["policies"][1]["max_weight"]
    for call, one in {"long": report(60), "short": report(4), "odd": odd}.items():
        reports.read(call, one)
    pack = reports.chat.build("answer", "which policy is best?")
    assert "0.99" not in pack.prompt and "policy-0: too little support for an estimate" in pack.prompt
    assert "policy-59: value 0.459 [0.409, 0.509] (effective samples 959" in pack.prompt and "of 60 policies shown" in pack.prompt
    assert "cannot be read (KeyError)" in pack.prompt and reports.whole["long"] == report(60)
    assert not any("0.99" in reports.chat.read(artifact.handle).decode() for artifact in reports.chat.artifacts)
    print(f"of {cw.count_tokens(json.dumps(report(60))):,} tokens of a report the model reads {cw.count_tokens(supported(report(60), 300))}")


if __name__ == "__main__":
    test()
