"""Pipecat: a processor before the model that offers each turn of a spoken conversation the functions that fit what was said."""

import asyncio

import contextweaver_rs as cw
import home
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames import frames as kinds
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.tests.utils import SleepFrame, run_test


class Shortlist(FrameProcessor):
    """Stands between what the user says and the model. The handlers of all functions are registered with the model as always."""

    def __init__(self, functions, top_k=3):
        super().__init__()
        self.functions, self.top_k = {one.name: one for one in functions}, top_k
        self.router = cw.Router([one.to_default_dict() for one in self.functions.values()])

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, kinds.LLMContextFrame):
            said = [one["content"] for one in frame.context.messages if one["role"] == "user" and isinstance(one["content"], str)]
            fitting = [self.functions[choice.name] for choice in self.router.route(said[-1] if said else "", self.top_k)]
            frame.context.set_tools(ToolsSchema(fitting or [*self.functions.values()]))
        await self.push_frame(frame, direction)


class Scripted(LLMService):
    """The model that follows the script."""

    def __init__(self, script):
        super().__init__()
        self.script = script

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if not isinstance(frame, kinds.LLMContextFrame):
            return await self.push_frame(frame, direction)
        step = self.script.turn([function.name for function in frame.context.tools.standard_tools])
        await self.push_frame(kinds.LLMFullResponseStartFrame())
        if isinstance(step, str):
            await self.push_frame(kinds.LLMTextFrame(step))
        else:
            await self.run_function_calls([kinds.FunctionCallFromLLM(step[0], "call_1", step[1], frame.context)])
        await self.push_frame(kinds.LLMFullResponseEndFrame())


def function(tool):
    """A tool of the home as Pipecat holds it."""
    return FunctionSchema(tool["name"], tool["description"], tool["inputSchema"].get("properties", {}), tool["inputSchema"].get("required", []))


async def call(params):
    await params.result_callback(home.run(params.function_name, **params.arguments))


def test():
    script, context = home.lights(), LLMContext()
    model, turns = Scripted(script), LLMContextAggregatorPair(context)
    model.register_function(None, call)
    talk = Pipeline([turns.user(), Shortlist(map(function, home.TOOLS)), model, turns.assistant()])
    def frames():
        yield kinds.LLMMessagesAppendFrame([{"role": "user", "content": home.QUESTION}], run_llm=True)
        while script.steps:
            yield SleepFrame(0.05)

    asyncio.run(run_test(talk, frames_to_send=frames(), start_timeout=60))
    script.check(context.messages[-1]["content"])


if __name__ == "__main__":
    test()
