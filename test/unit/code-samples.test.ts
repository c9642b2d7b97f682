import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { Webhook } from 'standardwebhooks'
import { listFirstEvents, listVerifications } from '../../src/dashboard/docs/languages.ts'

const BASE_URL = 'http://127.0.0.1:1'
const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, yes').toString('base64')}`

test('samples in eight languages send the same event to this server, each with a place for the key', () => {
  const snippets = listFirstEvents(BASE_URL)
  expect(snippets).toHaveLength(8)
  for (const { text } of snippets) {
    expect(text).toContain(`${BASE_URL}/v1/events`)
    expect(text).toContain('YOUR_API_KEY')
    for (const word of ['channelName', 'payments', 'New payment', '💰'])
      expect(text).toContain(word)
  }
})

test('the first event of the curl and JavaScript samples arrives as written', async () => {
  const arrived: unknown[] = []
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const { headers, method } = request
      arrived.push([method, pathname, headers.get('authorization'), await request.json()])
      return new Response('', { status: 201 })
    },
  })
  const snippets = new Map(
    listFirstEvents(`http://127.0.0.1:${server.port}`).map(({ id, text }) => [id, text]),
  )
  const run = async (...command: string[]) => {
    const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'pipe' })
    const said = await new Response(child.stderr).text()
    if ((await child.exited) !== 0) throw new Error(said)
  }
  await run(process.execPath, '-e', snippets.get('javascript') ?? '')
  await run('sh', '-c', snippets.get('curl') ?? '')
  const event = { channelName: 'payments', title: 'New payment', icon: '💰' }
  const expected = ['POST', '/v1/events', 'Bearer YOUR_API_KEY', event]
  expect(arrived).toEqual([expected, expected])
})

test('the JavaScript verification accepts genuine messages and nothing else', async () => {
  const text = listVerifications().find(({ id }) => id === 'verify-javascript')?.text ?? ''
  const program = `${text}
    for (const request of JSON.parse(process.env.REQUESTS))
      console.log((await receive(new Request('http://a', { method: 'POST', ...request }))).status)`
  const id = 'msg_1'
  const at = new Date()
  const body = '{"type":"event.created","data":{"title":"New payment 💰"}}'
  const signature = new Webhook(SECRET).sign(id, at, body)
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': signature,
  }
  const requests = [
    { headers, body },
    { headers, body: body.replace('New', 'Old') },
    { headers: { ...headers, 'webhook-timestamp': '1' }, body },
  ]
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', program], {
    cwd: import.meta.dirname,
    env: { ...process.env, WEBHOOK_SECRET: SECRET, REQUESTS: JSON.stringify(requests) },
    encoding: 'utf8',
  })
  expect([stdout.split('\n').filter(line => /^\d+$/.test(line)), stderr]).toEqual([
    ['204', '401', '401'],
    '',
  ])
})
