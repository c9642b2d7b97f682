import { expect, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { SCOPES } from '../../../src/access/keys/schema.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { newProject } from '../../support/worlds/project.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

/** Connects the official client, by the current revision of the protocol or by the one before. */
async function connect(key: string, mode: 'auto' | 'legacy' = 'auto') {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }),
  )
  const call = async (name: string, args: Record<string, unknown>) => {
    const { content, isError = false } = await client.callTool({ name, arguments: args })
    const [{ text = '' } = {}] = content as { text: string }[]
    return { isError, text, ...(!isError && { data: JSON.parse(text).data }) }
  }
  return { client, call, [Symbol.asyncDispose]: () => client.close() }
}

test.each(['auto', 'legacy'] as const)(
  'the official client sends an event, negotiating as %s',
  async mode => {
    const { key, get } = await newProject(server)
    await using mcp = await connect(key, mode)
    expect(mcp.client.getServerVersion()?.name).toBe('tidings')
    const { tools } = await mcp.client.listTools()
    expect(JSON.stringify(tools)).not.toContain('$ref')
    expect(tools.map(({ name }) => name)).toEqual(['send', 'ask', 'wait_for_answer'])

    const { data } = await mcp.call('send', {
      channelName: 'agents',
      title: 'Done',
      level: 'high',
      metadata: { big: 1.5 },
    })
    expect((await get(`/v1/events/${data.id}`)).body.data).toEqual(data)
    expect(data).toMatchObject({ channelName: 'agents', level: 'high', metadata: { big: 1.5 } })
  },
)

test('an agent asks, waits, and gets the answer of a member', async () => {
  const { projectId, account, path } = await newTenant(server)
  const { token } = await createKey(server.sql, { projectId, name: 'agent', scopes: SCOPES })
  await using mcp = await connect(token)
  const { data: asked } = await mcp.call('ask', {
    channelName: 'agents',
    title: 'Drop the table?',
    actions: [{ id: 'yes', label: 'Drop it' }],
    answer: { expiresInSeconds: 600 },
  })
  const { id } = asked
  expect((await mcp.call('wait_for_answer', { id, wait: 0 })).data.state).toBe('waiting')
  const waits = mcp.call('wait_for_answer', { id })
  await account.post(`${path}/events/${id}/answer`, { action: 'yes' })
  expect((await waits).data).toMatchObject({ state: 'answered', action: 'yes', by: 'Test person' })

  const stranger = await connect((await newProject(server)).key)
  expect(await stranger.call('wait_for_answer', { id })).toMatchObject({ isError: true })
  const incomplete = { channelName: 'agents', title: 'Why?' }
  expect((await mcp.call('ask', incomplete)).text).toBe('actions: Required; answer: Required')
})

test('failures are errors of the tool in words', async () => {
  const { key } = await newProject(server)
  await using mcp = await connect(key)
  expect(await mcp.call('send', { title: '' })).toEqual({
    isError: true,
    text: expect.stringMatching(/^channelName: Required; title: /),
  })
  for (const name of ['nothing', 'constructor'])
    await expect(mcp.call(name, {})).rejects.toThrow(`There is no tool ${name}`)
})

test('a key needs the scope of the tool, and its requests count once', async () => {
  const { key, post } = await newProject(server, { scopes: ['events:read'], limit: 3 })
  await using mcp = await connect(key)
  expect(await mcp.call('send', { channelName: 'c', title: 't' })).toEqual({
    isError: true,
    text: 'This API key lacks the scope events:write',
  })
  const third = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' })
  expect(third.headers.get('x-ratelimit-remaining')).toBe('0')
  expect((await post('/mcp', {})).status).toBe(429)
})

test('a request needs a key and one JSON object, and no stream stays open', async () => {
  const { key, post, request } = await newProject(server)
  expect((await fetch(`${server.url}/mcp`, { method: 'POST', body: '{}' })).status).toBe(401)
  expect((await request('/mcp')).status).toBe(405)
  expect((await post('/mcp', [])).status).toBe(400)
  expect((await request('/mcp', { method: 'POST', body: '{}' })).status).toBe(415)
  const padding = 'x'.repeat(300_000)
  expect((await post('/mcp', { padding })).status).toBe(413)
  await using mcp = await connect(key)
  await expect(mcp.client.listen({ toolsListChanged: true })).rejects.toThrow()
})
