import { afterEach, beforeEach, expect, test } from 'bun:test'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { boot } from '../support/servers/server.ts'
import { startTcpProxy } from '../support/servers/tcp-proxy.ts'

const real = { AbortController, setInterval, clearInterval, clearTimeout }
/** The intervals that run, and the signals of loops that nothing has stopped. */
const running = new Set<unknown>()

beforeEach(() => {
  globalThis.AbortController = class extends real.AbortController {
    constructor() {
      super()
      running.add(this)
    }

    override abort(reason?: unknown) {
      running.delete(this)
      super.abort(reason)
    }
  }
  const start = (...options: Parameters<typeof setInterval>) => {
    const timer = real.setInterval(...options)
    running.add(timer)
    return timer
  }
  globalThis.setInterval = Object.assign(start, real.setInterval)
  for (const name of ['clearInterval', 'clearTimeout'] as const) {
    globalThis[name] = (timer?: Timer | number | string) => {
      running.delete(timer)
      real.clearInterval(timer as number)
    }
  }
})
afterEach(() => void Object.assign(globalThis, real))

test('nothing runs on after a start in which a statement fails, whichever it is', async () => {
  const proxy = await startTcpProxy(await cloneDatabase())
  const swept = new Set<string>()
  const refused: string[] = []
  let names: string[] = []
  function failNext(): void {
    const watch = proxy.watch(({ from, type, application, statement }) => {
      // The name of the listener has the port of the server, too.
      const name = `${application.split(' ')[1]}: ${statement}`
      // A rollback that fails holds up the end of its connection for seconds.
      const isSwept = swept.has(name) || statement.trim() === 'rollback'
      if (from !== 'client' || type !== 'E' || isSwept) return false
      swept.add(name)
      names.push(name)
      return true
    })
    void watch.held.then(held => {
      held.fail('XX000')
      failNext()
    })
  }
  running.clear()
  // Only the first start creates a project and its key.
  await (await boot({ databaseUrl: proxy.url }))[Symbol.asyncDispose]()
  failNext()
  do {
    names = []
    const booted = await boot({ databaseUrl: proxy.url }).catch(() => undefined)
    await booted?.[Symbol.asyncDispose]()
    expect([names, running.size]).toEqual([names, 0])
    if (!booted) refused.push(...names)
  } while (names.length > 0)
  expect(refused.join()).toContain('tail: select')
  await proxy.close()
})

test('nothing of a failed attempt runs on beside the next one', async () => {
  const proxy = await startTcpProxy(await cloneDatabase())
  running.clear()
  let attempts = 0
  proxy.watch(({ from, type, application }) => {
    if (from === 'client' && type === 'E' && application === 'tidings start') attempts++
    return false
  })
  const trapped = proxy.trap({ from: 'client', type: 'E', application: 'tidings tail' })
  void trapped.then(held => held.fail('53300'))
  await (await boot({ databaseUrl: proxy.url }))[Symbol.asyncDispose]()
  expect([attempts, running.size]).toEqual([2, 0])
  await proxy.close()
})
