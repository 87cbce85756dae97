// Tries `mcp serve` as an OAuth 2.1 resource server with a real authorization server, the way an MCP client does: it asks, is
// told where to get a token, gets one with its client credentials, and asks again. The client library of the protocol does so too.
//
//   node test.mjs CONTEXTWEAVER CATALOG
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Provider } from 'oidc-provider'

const [contextweaver, catalog] = process.argv.slice(2)
const resource = 'http://gateway.test/mcp'

function newKey(kid) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }
}

// An authorization server on this port, any with 0; with the key of this name alone.
async function authorizationServer(port, kid) {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${server.address().port}`
  const client = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [], client_secret: 'secret' }
  const provider = new Provider(issuer, {
    clients: ['ann', 'bob'].map((client_id) => ({ ...client, client_id })),
    jwks: { keys: [newKey(kid)] },
    scopes: ['tools:all', 'tools:read', 'other'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, audience) => ({
          scope: 'tools:all tools:read other', audience, accessTokenTTL: 600, accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
  provider.on('server_error', (_, error) => console.error(error))
  server.on('request', provider.callback())
  const close = () => { server.closeAllConnections(); return new Promise((done) => server.close(done)) }
  return { issuer, port: server.address().port, close }
}

async function gateway(folder, issuer) {
  await writeFile(path.join(folder, 'gateway.json'), JSON.stringify({
    catalog, name: 'oauth-test',
    visibility_profiles: { reader: { exclude_tools: ['*'] } },
    http: {
      listen: '127.0.0.1:0',
      tokens: [{ name: 'ann', token: 'static-token' }],
      oauth: { issuer, resource, scopes: [{ scope: 'tools:all' }, { scope: 'tools:read', profile: 'reader' }] },
    },
  }))
  const child = spawn(contextweaver, ['mcp', 'serve', '--config', path.join(folder, 'gateway.json'), '--transport', 'http'],
    { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  const address = await new Promise((resolve, reject) => {
    child.stderr.on('data', (data) => {
      log += data
      const found = /listening at (\S+)\n/.exec(log)
      if (found) resolve(found[1])
    })
    child.on('exit', (code) => reject(new Error(`it ended with ${code}: ${log}`)))
  })
  return { child, address }
}

async function ask(address, token, { method = 'initialize', session } = {}) {
  const params = method === 'initialize'
    ? { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } } : {}
  const response = await fetch(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream',
      ...(token && { authorization: `Bearer ${token}` }), ...(session && { 'mcp-session-id': session }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await response.text()
  return {
    status: response.status, challenge: response.headers.get('www-authenticate') ?? '',
    session: response.headers.get('mcp-session-id'), text,
  }
}

// What a client does with the challenge: from the metadata of the resource to that of the authorization server, to a token.
async function tokenBy(address, challenge, client, scope, audience) {
  const [, metadataUrl] = /resource_metadata="([^"]+)"/.exec(challenge)
  const metadata = await (await fetch(new URL(new URL(metadataUrl).pathname, address))).json()
  assert.equal(metadata.resource, resource)
  const [issuer] = metadata.authorization_servers
  const server = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
  const answer = await fetch(server.token_endpoint, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client}:secret`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource: audience ?? metadata.resource }),
  })
  const body = await answer.json()
  assert.ok(body.access_token, JSON.stringify(body))
  return body.access_token
}

const folder = await mkdtemp(path.join(tmpdir(), 'oauth-test-'))
let issuer = await authorizationServer(0, 'first')
const { child, address } = await gateway(folder, issuer.issuer)
try {
  const asked = await ask(address)
  assert.equal(asked.status, 401)
  assert.match(asked.challenge, /^Bearer resource_metadata="http:\/\/gateway\.test\/\.well-known\/oauth-protected-resource\/mcp"/)
  const token = (client, scope, audience) => tokenBy(address, asked.challenge, client, scope, audience)

  const all = await token('ann', 'tools:all')
  const opened = await ask(address, all)
  assert.equal(opened.status, 200, opened.text)
  const listed = await ask(address, all, { method: 'tools/list', session: opened.session })
  assert.match(listed.text, /tool_browse/)
  assert.equal((await ask(address, 'static-token')).status, 200)

  // Sessions belong to their callers: neither another user nor the holder of a token of the same name has them.
  for (const other of [await token('bob', 'tools:all'), await token('ann', 'tools:read'), 'static-token']) {
    assert.equal((await ask(address, other, { method: 'tools/list', session: opened.session })).status, 404)
  }
  const poor = await ask(address, await token('ann', 'other'))
  assert.equal(poor.status, 403)
  assert.match(poor.challenge, /error="insufficient_scope".*scope="tools:all tools:read"/)
  const foreign = await ask(address, await token('ann', 'tools:all', 'http://elsewhere.test/mcp'))
  assert.equal(foreign.status, 401)
  assert.match(foreign.challenge, /error="invalid_token", error_description="the token is for another audience"/)
  const [head, body, signature] = all.split('.')
  const claims = JSON.parse(Buffer.from(body, 'base64url'))
  const forged = Buffer.from(JSON.stringify({ ...claims, sub: 'bob' })).toString('base64url')
  const unsigned = Buffer.from('{"alg":"none"}').toString('base64url')
  for (const bad of [`${head}.${forged}.${signature}`, `${unsigned}.${body}.`]) {
    assert.equal((await ask(address, bad)).status, 401)
  }
  const metrics = async (shown) =>
    (await fetch(new URL('/metrics', address), { headers: { authorization: `Bearer ${shown}` } })).status
  assert.deepEqual([await metrics(all), await metrics(await token('ann', 'tools:read'))], [200, 403])

  // The client library finds its way from the address alone.
  const library = new Client({ name: 't', version: '1' })
  const authProvider = new ClientCredentialsProvider(
    { clientId: 'ann', clientSecret: 'secret', scope: 'tools:all', expectedIssuer: issuer.issuer })
  const there = (url, init) => fetch(String(url).replace('http://gateway.test', new URL(address).origin), init)
  await library.connect(new StreamableHTTPClientTransport(new URL(resource), { authProvider, fetch: there }))
  const { tools } = await library.listTools()
  assert.ok(tools.some(({ name }) => name === 'tool_browse'), JSON.stringify(tools))
  await library.close()

  // The authorization server changes its key: tokens with the new one are taken, and those with the old one no longer.
  await issuer.close()
  issuer = await authorizationServer(issuer.port, 'second')
  const renewed = await token('ann', 'tools:all')
  await new Promise((done) => setTimeout(done, 5500))
  assert.equal((await ask(address, renewed)).status, 200)
  assert.equal((await ask(address, all)).status, 401)
  // While it is away, keys that are known are good.
  await issuer.close()
  assert.equal((await ask(address, renewed)).status, 200)
} finally {
  child.removeAllListeners('exit')
  const ended = once(child, 'exit')
  child.kill()
  const [code] = await ended
  assert.equal(code, 0)
  await issuer.close().catch(() => {})
  await rm(folder, { recursive: true })
}
console.log('tokens of an authorization server open what their scopes permit')
