import { expect, setDefaultTimeout, test } from 'bun:test'
import { cloneDatabase, withDatabase } from '../support/postgres.ts'
import { runProgram, spawnProgram } from '../support/process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const WAITING = 'Waiting for the database at'

test.each(['1', '2'])(
  '§12 %s workers that start without Postgres wait, say so, and then serve',
  async WORKERS => {
    const databaseUrl = await cloneDatabase()
    const proxy = await startTcpProxy(databaseUrl)
    proxy.hangUp()
    await using program = spawnProgram({ env: { DATABASE_URL: proxy.url, WORKERS } })
    await until(() => program.logged(WAITING).length > 0)
    expect(program.isRunning()).toBe(true)
    // The output must not contain the password.
    expect(program.output()).not.toContain(new URL(databaseUrl).password)
    proxy.heal()
    const url = await program.listening
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect((await program.kill('SIGTERM')).code).toBe(0)
    await proxy.close()
  },
)

test('§12 a stop ends the wait for Postgres; a wrong address is reported at once', async () => {
  const databaseUrl = await cloneDatabase()
  const away = databaseUrl.replace('?host=', '?host=/nowhere')
  await using program = spawnProgram({ env: { DATABASE_URL: away } })
  program.listening.catch(() => {})
  await until(() => program.logged(WAITING).length > 0)
  expect(await program.kill('SIGTERM')).toEqual({ code: 0, signal: null })

  const wrong = new URL(databaseUrl)
  wrong.password = 'wrong'
  const absent = withDatabase(databaseUrl, 'absent')
  for (const [DATABASE_URL, reason] of [
    [wrong.href, 'rejected the user name or password'],
    [absent, 'has no database with this name'],
  ] as const) {
    const refused = await runProgram({ args: ['serve'], env: { DATABASE_URL } })
    expect(refused.code).toBe(1)
    expect(refused.output).toContain(`${reason}. Correct DATABASE_URL`)
  }
})
