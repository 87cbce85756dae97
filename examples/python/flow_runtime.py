"""A router over tools and flows. A flow is a fixed list of calls: once a model has chosen it, a small runtime makes them without
asking again, and the record of all steps comes back through the firewall as one result."""

import json

import contextweaver_rs as cw
import home

TOOLS = json.loads((home.HOUSEHOLD.parents[1] / "workbench/catalog.json").read_text(encoding="utf-8"))
# Each step has a name, a tool and arguments. In braces stands an input of the flow, or a part of what an earlier step gave.
FLOW = {"name": "explain_failed_run", "version": "1.2.0", "inputs": {"project": {"type": "string"}, "pipeline": {"type": "string"}},
        "description": "Explain why a pipeline failed: its newest failed run, the job that failed and the log of that job.",
        "steps": [("runs", "ci:list-runs", {"project": "{project}", "pipeline": "{pipeline}", "status": "failed", "limit": 1}),
                  ("run", "ci:get-run", {"project": "{project}", "run_id": "{runs[0][id]}"}),
                  ("log", "ci:get-job-log", {"project": "{project}", "run_id": "{runs[0][id]}", "job": "{run[failed]}"})]}


class Runtime:
    """`call` takes a tool and its arguments. No model is asked between steps, so the same inputs make the same calls."""

    def __init__(self, tools, flows, call):
        schema = lambda inputs: {"type": "object", "properties": inputs, "required": list(inputs)}
        as_tools = [{**flow, "server": "flows", "inputSchema": schema(flow["inputs"])} for flow in flows]
        self.catalog, self.call = cw.Catalog([*tools, *as_tools]), call
        self.flows = {f"flows:{flow['name']}": flow for flow in flows}
        takes = {f"{tool.namespace}:{tool.name}": tool.args_schema["properties"] for tool in self.catalog}
        for name, tool, given in (step for flow in flows for step in flow["steps"]):
            if not given.keys() <= takes.get(tool, {}).keys():
                raise ValueError(f"step `{name}`: no tool {tool} takes {', '.join(given)}")

    def run(self, tool, arguments):
        """What a tool gives, or the record of a flow, and whether it failed. A flow ends with the first step that fails."""
        if (flow := self.flows.get(tool)) is None:
            return self.call(tool, arguments), False
        known, record = dict(arguments), {"flow": flow["name"], "version": flow["version"]}
        for name, tool, given in flow["steps"]:
            try:
                filled = {key: value.format_map(known) if isinstance(value, str) else value for key, value in given.items()}
                record[name] = known[name] = self.call(tool, filled)
            except Exception as error:
                return {**record, "failed": name, "reason": repr(error)}, True
        return record, False


def answer(model, runtime, question):
    """Three questions to the model, however many calls its choice makes."""
    chat, route = cw.ContextManager(), cw.Router(runtime.catalog).route(question)
    chat.ingest("u1", "user_turn", question)
    chosen = route.selected(model("route", chat.build_route_prompt(question, route)))
    if chosen is None:
        return "None of the tools fits."
    tool = runtime.catalog[chosen]
    arguments = model("call", chat.build_call_prompt(question, tool.id, tool.definition))
    chat.ingest("c1", "tool_call", f"{tool.name}({arguments})", parent="u1")
    result, failed = runtime.run(f"{tool.namespace}:{tool.name}", json.loads(arguments))
    chat.ingest_tool_result("c1", result, is_error=failed)
    return model("answer", chat.build("answer", question))


def test():
    """Three calls and a log of 5,000 lines are one result; the line that matters is in the prompt, and the rest is not."""
    log = "\n".join(f"test {at} passed" if at != 3000 else "ERROR test_coupon: expected 200, got 409" for at in range(5000))
    played, calls, shown = {"ci:list-runs": [{"id": "r7"}], "ci:get-run": {"failed": "unit"}, "ci:get-job-log": log}, [], {}
    said = {"route": "flows:explain_failed_run", "call": '{"project": "shop", "pipeline": "main"}', "answer": "A coupon was used twice."}
    runtime = Runtime(TOOLS, [FLOW], lambda tool, arguments: calls.append((tool, arguments)) or played[tool])
    for _ in range(2):
        text = answer(lambda phase, prompt: shown.update({phase: prompt}) or said[phase], runtime, "why did the main pipeline fail")
        assert text == said["answer"] and all(prompt.tokens <= prompt.budget for prompt in shown.values())
    assert calls[:3] == calls[3:] and calls[2][1] == {"project": "shop", "run_id": "r7", "job": "unit"}
    assert "got 409" in str(shown["answer"]) and "test 2999 passed" not in str(shown["answer"])
    assert runtime.run("ci:get-run", {"project": "shop", "run_id": "r7"}) == ({"failed": "unit"}, False)
    del played["ci:get-job-log"]
    assert runtime.run(said["route"], json.loads(said["call"]))[0]["failed"] == "log"
    print(f"a log of {cw.count_tokens(log):,} tokens, and {shown['answer'].tokens:,} in the prompt of the answer")


if __name__ == "__main__":
    test()
