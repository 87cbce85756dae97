// A client whose types are generated from the OpenAPI document: what it may ask and what it gets is checked by the compiler.
import assert from "node:assert";
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });

const tools = [
  { name: "create_issue", description: "Open a ticket", inputSchema: { type: "object" } },
  { name: "send_mail", description: "Send a letter to somebody", inputSchema: { type: "object" } },
];
const routed = await client.POST("/v1/route", { body: { query: "open a ticket", catalog: tools, as: "openai" } });
assert(routed.data?.kind === "route tools", JSON.stringify(routed.error));
assert.equal(Object.keys(routed.data.names)[0], "create_issue");
assert(Array.isArray(routed.data.tools) && routed.data.tools[0].type === "function", JSON.stringify(routed.data.tools));

const queries = [{ id: "q1", query: "open a ticket", relevant: ["create_issue"] }];
const evaluated = await client.POST("/v1/evaluate", { body: { queries, catalog: { tools } } });
assert.equal(evaluated.data?.evaluations[0].facts.answerable, 1, JSON.stringify(evaluated.error));

const conversation = [
  { role: "user", content: "why did the nightly job fail?" },
  { role: "assistant", tool_calls: [{ id: "c1", type: "function", function: { name: "read_log", arguments: "{}" } }] },
  { role: "tool", tool_call_id: "c1", content: "INFO copied a block\n".repeat(5000) + "ERROR disk full\n" },
];
const compiled = await client.POST("/v1/compile", { body: { conversation, query: "nightly job", budget: 800 } });
assert(compiled.data, JSON.stringify(compiled.error));
assert(compiled.data.prompt.includes("disk full"));
const handle = compiled.data.artifacts[0];
const viewed = await client.POST("/v1/view", { body: { conversation, handle, selector: "grep:ERROR" } });
assert(viewed.data?.text.includes("disk full"), JSON.stringify(viewed.error));

const handed = await client.POST("/v1/handoff", { body: { conversation: { messages: conversation }, budget: 300 } });
assert(handed.data?.text.includes("nightly job"), JSON.stringify(handed.error));

const compacted = await client.POST("/v1/compact", { body: { result: conversation[2].content, tokens: 100 } });
assert(compacted.data?.summary.includes("disk full"), JSON.stringify(compacted.error));

const counted = await client.POST("/v1/count", { body: { text: compiled.data.prompt } });
assert(counted.data && counted.data.tokens <= 800, JSON.stringify(counted));

// @ts-expect-error A member of another type is refused by the compiler, and by the server.
const refused = await client.POST("/v1/count", { body: { text: 7 } });
assert.equal(refused.response.status, 400);
assert(refused.error?.message.includes("text"));
console.log("the client got what its types say");
