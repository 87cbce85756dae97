// A TypeScript client of a gateway, driven by `scripts/conformance`.
//
//     node typescript_client.mjs sdk|client http URL
//     node typescript_client.mjs sdk|client stdio COMMAND ARGS…
//
// Prints one line about the server and the names of its tools, then reads calls (`{"name": …, "arguments": …}`) line by
// line and prints `{"text": …, "error": …}` for each, until its input ends. Packages are found from the working folder.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const found = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(found.resolve(name)).href);
const [kind, transport, ...target] = process.argv.slice(2);

async function modules() {
  if (kind === "sdk") {
    const sdk = "@modelcontextprotocol/sdk/client";
    return [await load(`${sdk}/index.js`), await load(`${sdk}/streamableHttp.js`), await load(`${sdk}/stdio.js`)];
  }
  const main = await load("@modelcontextprotocol/client");
  return [main, main, await load("@modelcontextprotocol/client/stdio")];
}

const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }] = await modules();
const options = kind === "sdk" ? {} : { versionNegotiation: { mode: "auto" } };
const client = new Client({ name: "conformance", version: "1" }, options);
const connection =
  transport === "http"
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1) });
// The older client keeps the version to itself, and tells its connection.
let told;
const pass = connection.setProtocolVersion?.bind(connection);
connection.setProtocolVersion = (version) => {
  told = version;
  pass?.(version);
};
await client.connect(connection);

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const version = client.getNegotiatedProtocolVersion?.() ?? told;
const { tools } = await client.listTools();
say({ version, tools: tools.map((tool) => tool.name) });
for await (const line of createInterface({ input: process.stdin })) {
  const result = await client.callTool(JSON.parse(line));
  say({ text: result.content[0].text, error: Boolean(result.isError) });
}
await client.close();
