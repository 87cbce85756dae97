// Tries `credentials.exchange` and `.passthrough` with a real authorization server: two users call two upstreams through the
// gateway, and each upstream checks the token that it is shown and says whose it is.
//
//   node exchange.mjs CONTEXTWEAVER
//
// oidc-provider has no token exchange (RFC 8693) of its own. It is a grant that is registered with it here: clients, their
// authentication, errors and the tokens are the provider's.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SignJWT, createLocalJWKSet, createRemoteJWKSet, jwtVerify } from 'jose'
import { Provider, errors } from 'oidc-provider'

const [contextweaver] = process.argv.slice(2)
const gatewayResource = 'http://gateway.test/mcp'
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'

async function listen(handler) {
  const server = createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${server.address().port}` }
}

async function authorizationServer() {
  const { server, url: issuer } = await listen()
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { ...privateKey.export({ format: 'jwk' }), kid: 'a', alg: 'RS256', use: 'sig' }
  const info = (audience) => ({
    scope: 'tools', audience, accessTokenTTL: 600, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
  })
  const user = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [], client_secret: 'secret' }
  const provider = new Provider(issuer, {
    clients: [
      ...['ann', 'bob', 'eve'].map((client_id) => ({ ...user, client_id })),
      { ...user, client_id: 'gateway', client_secret: 's:e&c ret', grant_types: [exchangeGrant] },
    ],
    jwks: { keys: [key] },
    scopes: ['tools'],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => info(resource),
      },
    },
  })
  const keys = createLocalJWKSet({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'a', alg: 'RS256' }] })
  let exchanges = 0
  provider.registerGrantType(exchangeGrant, async (ctx, next) => {
    exchanges += 1
    const { subject_token, subject_token_type, audience } = ctx.oidc.params
    assert.equal(subject_token_type, 'urn:ietf:params:oauth:token-type:access_token')
    const { payload } = await jwtVerify(subject_token, keys, { issuer, audience: gatewayResource })
    if (audience !== 'urn:files') throw new errors.InvalidTarget()
    if (payload.sub === 'eve') throw new errors.InvalidGrant('no access')
    const token = new provider.AccessToken({ accountId: payload.sub, client: ctx.oidc.client, grantId: 'none', gty: 'exchange' })
    token.resourceServer = new provider.ResourceServer(audience, info(audience))
    token.scope = 'tools'
    ctx.body = {
      access_token: await token.save(), token_type: 'Bearer', expires_in: token.expiration,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    }
    await next()
  }, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'], [])
  provider.on('server_error', (_, error) => console.error(error))
  server.on('request', provider.callback())
  // The provider gives tokens of one audience; others give such of several.
  const forBoth = (user) => new SignJWT({ client_id: user, scope: 'tools' }).setProtectedHeader({ alg: 'RS256', kid: 'a' })
    .setIssuer(issuer).setSubject(user).setAudience([gatewayResource, 'urn:notes']).setExpirationTime('10m').sign(privateKey)
  return { issuer, server, exchanges: () => exchanges, forBoth }
}

// A server of MCP that lists for everybody, and answers calls to whom its own audience is for.
async function upstream(issuer, audience) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  return listen(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    const answer = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body))
    }
    if (request.method !== 'POST') return answer(405)
    const { id, method } = JSON.parse(text)
    if (id === undefined) return answer(202)
    const done = (result) => answer(200, { jsonrpc: '2.0', id, result })
    if (method === 'initialize') {
      return done({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'u', version: '1' } })
    }
    if (method === 'tools/list') return done({ tools: [{ name: 'who', description: 'Says who asks', inputSchema: { type: 'object' } }] })
    if (method !== 'tools/call') return answer(200, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })
    try {
      const token = (request.headers.authorization ?? '').replace('Bearer ', '')
      const { payload } = await jwtVerify(token, keys, { issuer, audience })
      return done({ content: [{ type: 'text', text: `${audience} sees ${payload.sub} by ${payload.client_id}` }] })
    } catch (error) {
      return answer(401)
    }
  })
}

const id = await authorizationServer()
const files = await upstream(id.issuer, 'urn:files')
const notes = await upstream(id.issuer, 'urn:notes')
const folder = await mkdtemp(path.join(tmpdir(), 'exchange-test-'))
await writeFile(path.join(folder, 'secret'), 's:e&c ret\n')
await writeFile(path.join(folder, 'gateway.json'), JSON.stringify({
  mode: 'proxy',
  audit: { file: 'audit.jsonl' },
  upstreams: {
    files: { url: files.url, era: 'legacy', credentials: { exchange: {
      token_endpoint: `${id.issuer}/token`, client_id: 'gateway', client_secret_file: 'secret', audience: 'urn:files' } } },
    notes: { url: notes.url, era: 'legacy', credentials: { passthrough: { issuer: id.issuer, audience: 'urn:notes' } } },
  },
  http: {
    listen: '127.0.0.1:0', tokens: [{ name: 'fixed', token: 'static-token' }],
    oauth: { issuer: id.issuer, resource: gatewayResource },
  },
}))
const child = spawn(contextweaver, ['mcp', 'serve', '--config', path.join(folder, 'gateway.json'), '--transport', 'http'],
  { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, RUST_LOG: 'trace' } })
let log = ''
child.stderr.setEncoding('utf8')
const address = await new Promise((resolve, reject) => {
  child.stderr.on('data', (data) => {
    log += data
    const found = /listening at (\S+)\n/.exec(log)
    if (found) resolve(found[1])
  })
  child.on('exit', (code) => reject(new Error(`it ended with ${code}: ${log}`)))
})

async function tokenOf(client, resource) {
  const answer = await fetch(`${id.issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client}:secret`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'tools', resource }),
  })
  const body = await answer.json()
  assert.ok(body.access_token, JSON.stringify(body))
  return body.access_token
}

async function ask(token, session, method, params) {
  const response = await fetch(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`, ...(session && { 'mcp-session-id': session }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await response.text()
  return { session: response.headers.get('mcp-session-id'), message: JSON.parse(text.replace(/^data: /, '')) }
}

// What the tools `who` of both upstreams say to this token.
async function seen(token) {
  const { session } = await ask(token, undefined, 'initialize',
    { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } })
  const listed = await ask(token, session, 'tools/list', {})
  const names = listed.message.result.tools.map(({ name }) => name).filter((name) => name.includes('who'))
  const texts = {}
  for (const name of names) {
    const called = await ask(token, session, 'tools/call', { name, arguments: {} })
    texts[name.split('__')[0]] = called.message.result.content[0].text
  }
  return texts
}

try {
  const [ann, bob, eve] = await Promise.all(['ann', 'bob', 'eve'].map((user) => tokenOf(user, gatewayResource)))
  const both = await id.forBoth('ann')
  const calls = await Promise.all(Array.from({ length: 20 }, (_, at) => seen(at % 2 ? ann : bob)))
  calls.forEach((texts, at) => {
    assert.equal(texts.files, `urn:files sees ${at % 2 ? 'ann' : 'bob'} by gateway`)
    assert.match(texts.notes, /AUTH_FAILED.*upstream `notes`.*its `aud` lacks `urn:notes`/)
  })
  assert.equal(id.exchanges(), 2)
  assert.deepEqual(await seen(both), { files: 'urn:files sees ann by gateway', notes: 'urn:notes sees ann by ann' })
  assert.match((await seen(eve)).files, /AUTH_FAILED.*upstream `files`.*`invalid_grant`/)
  for (const text of Object.values(await seen('static-token'))) assert.match(text, /AUTH_FAILED.*has shown no token/)
  const audit = await readFile(path.join(folder, 'audit.jsonl'), 'utf8')
  assert.match(audit, /"credentials":"upstreams.files.credentials.exchange"/)
  assert.match(audit, /"credentials":"upstreams.notes.credentials.passthrough"/)
  for (const secret of ['eyJ', 's:e&c']) assert.ok(!log.includes(secret) && !audit.includes(secret), `${secret} was written`)
} finally {
  child.removeAllListeners('exit')
  const ended = once(child, 'exit')
  child.kill()
  await ended
  for (const { server } of [id, files, notes]) {
    server.closeAllConnections()
    server.close()
  }
  await rm(folder, { recursive: true })
}
console.log('upstreams see who calls, with tokens that are for them')
