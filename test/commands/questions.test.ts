import { expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SCOPES } from '../../src/access/keys/schema.ts'
import { parseId } from '../../src/base/ids.ts'
import { findMain, spawnProgram } from '../support/servers/process.ts'
import { boot } from '../support/servers/server.ts'
import { forFile } from '../support/for-file.ts'
import { until } from '../support/until.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newTenant } from '../support/worlds/tenant.ts'

const server = forFile(() => boot())

/** A tenant, and commands that use its key. `gate` lets them reach the server, or not. */
async function openTenant() {
  const tenant = await newTenant(server)
  const { projectId, v1, path, account } = tenant
  const { token } = await createKey(server.sql, {
    ...{ projectId, name: 'cli', limit: 1_000, scopes: SCOPES },
  })
  const gate = { isOpen: true }
  const proxy = createServer(async (request, response) => {
    if (!gate.isOpen) return void request.socket.destroy()
    const { method, url, headers } = request
    const body = method === 'POST' ? await new Response(request as never).text() : undefined
    const { host, connection, ...others } = headers
    const answer = await fetch(`${server.url}${url}`, {
      ...{ method: method!, headers: others as Record<string, string> },
      ...(body !== undefined && { body }),
    })
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(await answer.text())
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as AddressInfo
  const env = { TIDINGS_URL: `http://127.0.0.1:${port}`, TIDINGS_API_KEY: token }
  const events = async (channel: string): Promise<any[]> =>
    (await v1.get(`/v1/events?threads=all&channel=${channel}`)).body.data?.items ?? []
  return {
    ...tenant,
    gate,
    cut() {
      gate.isOpen = false
      proxy.closeAllConnections()
    },
    events,
    async untilAsked() {
      await until(async () => (await events('questions')).length > 0)
      return (await events('questions'))[0]
    },
    env,
    start: (...args: string[]) => spawnProgram({ args, env }),
    answer: (id: string, action: string) => account.post(`${path}/events/${id}/answer`, { action }),
    [Symbol.dispose]() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

const ASK = ['ask', 'Deploy 1.4?', '--action', 'deploy', '--action', 'abort=Not today']

test('attention §7 ask prints the answer, and survives a time without the server', async () => {
  using one = await openTenant()
  await using asking = one.start(...ASK)
  const { id } = await one.untilAsked()
  one.cut()
  expect((await one.answer(id, 'abort')).status).toBe(200)
  one.gate.isOpen = true
  expect(await asking.exited).toEqual({ code: 1, signal: null })
  expect(asking.output()).toBe('abort\n')
  expect((await one.events('questions'))[0].title).toBe('Not today — answered by Test person')
})

test('attention §7 ask exits with 124 if nobody answers in time, and 130 if it is interrupted', async () => {
  using one = await openTenant()
  await using expiring = one.start(...ASK)
  const eventId = parseId('evt', (await one.untilAsked()).id)!
  await server.sql`update questions set expires_at = now() where id = ${eventId}`
  await server.sql`update outbox set available_at = now() where event_id = ${eventId} and kind = 'timer'`
  expect([(await expiring.exited).code, expiring.output()]).toEqual([124, ''])
  await using interrupted = one.start(...ASK)
  await until(async () => (await one.events('questions')).length === 3)
  expect((await interrupted.kill('SIGINT')).code).toBe(130)
  const long = 'very-long-name-of-an-action-of-48-characters-in-all'.slice(0, 48)
  await using labelled = one.start('ask', 'Deploy?', '--action', long)
  await until(async () => (await one.events('questions')).length === 4 || !labelled.isRunning())
  expect(labelled.output()).toBe('')
  expect((await labelled.kill('SIGINT')).code).toBe(130)
  await using refused = one.start('ask', 'Deploy?', '--action', 'Deploy!')
  expect((await refused.exited).code).toBe(69)
})

test('attention §7 run passes output, exit code and signals on, and tells how a command ends', async () => {
  using one = await openTenant()
  const script = 'printf "a\\033[1mb\\n"; for n in $(seq 30); do echo $n; done; exit 3'
  await using failing = one.start('run', '--channel', 'jobs', '--', 'sh', '-c', script)
  expect((await failing.exited).code).toBe(3)
  expect(failing.output()).toStartWith('a\u001b[1mb\n1\n2\n')
  const [end, start] = await one.events('jobs')
  expect([start.title, start.state, end.state, end.threadSeq]).toEqual([
    ...['sh started', 'running', 'failed', start.seq],
  ])
  expect(end.title).toStartWith('sh failed with 3 after ')
  expect(end.description.split('\n')).toEqual(Array.from({ length: 20 }, (_, n) => `${n + 11}`))
  expect(end.metadata).toMatchObject({ exitCode: 3 })

  // A reader that is slower than the command gets all of it.
  const container = { enter: ['sh', '-c', '"$@" | { sleep 3; wc -c; }', 'sh'] }
  const args = ['run', '--', 'seq', '20000']
  await using slow = spawnProgram({ env: one.env, container, args })
  await slow.exited
  expect(slow.output()).toContain('108894\n')

  await using stopped = one.start('run', '--', 'sh', '-c', 'echo ready; exec sleep 600')
  await until(() => stopped.output().includes('ready'))
  expect((await stopped.kill('SIGTERM')).code).toBe(143)
  one.cut()
  await using alone = one.start('run', '--', 'sh', '-c', 'echo done')
  expect((await alone.exited).code).toBe(0)
  expect(alone.output()).toContain('done\n')
  await using absent = one.start('run', '--', '/nonexistent/command')
  expect((await absent.exited).code).toBe(127)
})

test('attention §7 run needs no key, and ends with its command and with its reader', async () => {
  using one = await openTenant()
  const env = { TIDINGS_URL: one.env.TIDINGS_URL, XDG_CONFIG_HOME: '/nonexistent' }
  await using keyless = spawnProgram({ env, args: ['run', '--', 'sh', '-c', 'echo ran'] })
  expect((await keyless.exited).code).toBe(0)
  expect(keyless.output()).toMatch(/ran\n/)
  expect(keyless.output()).toContain('Set TIDINGS_API_KEY')

  await using daemon = one.start('run', '--', 'sh', '-c', 'sleep 600 & echo "pid $!"')
  expect((await daemon.exited).code).toBe(0)
  // It still runs.
  process.kill(Number(/pid (\d+)/.exec(daemon.output())![1]))

  const container = { enter: ['sh', '-c', '"$@" | head -n 1', 'sh'] }
  await using read = spawnProgram({ env: one.env, container, args: ['run', '--', 'yes'] })
  await read.exited
  const [end] = await one.events('runs')
  expect(end.title).toStartWith('yes failed with 1')
})

// util-linux makes a terminal the controlling one.
test.skipIf(process.platform !== 'linux')(
  'attention §7 Ctrl-C reaches the command of run once, whatever its input is',
  async () => {
    using one = await openTenant()
    let shown = ''
    const terminal = new Bun.Terminal({ data: (_, bytes) => void (shown += bytes.toString()) })
    const script =
      'trap "echo interrupted" INT; trap "exit 7" TERM; echo ready; while :; do sleep 0.1; done'
    const run = [process.execPath, findMain(), 'run', '--', 'sh', '-c', script]
    const child = Bun.spawn(
      ['setsid', '--ctty', 'sh', '-c', 'exec "$@" </dev/null', 'sh', ...run],
      {
        env: { PATH: process.env['PATH'], ...one.env },
        terminal,
      },
    )
    await until(() => shown.includes('ready'))
    terminal.write('\u0003')
    await until(() => shown.includes('interrupted'))
    child.kill('SIGTERM')
    expect(await child.exited).toBe(7)
    expect(shown.match(/interrupted/g)).toHaveLength(1)
    terminal.close()
  },
)
