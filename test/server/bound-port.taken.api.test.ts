import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { boot } from '../support/servers/server.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { listen } from '../support/loopback.ts'
import { openSql } from '../support/sql.ts'

const stranger = createServer()
let port: number
let databaseUrl: string
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  port = await listen(stranger)
})
afterAll(() => void stranger.close())

test.each([
  ['PORT', 'port'],
  ['METRICS_PORT', 'metricsPort'],
] as const)('a taken %s is reported with the name of its setting', async (name, setting) => {
  const starting = boot({ databaseUrl, [setting]: port })
  await expect(starting).rejects.toThrow(
    `Port ${port} on 127.0.0.1 is in use. Stop the other program, or set ${name} to another port.`,
  )
  // The key of a first start is shown once, and only by a start that succeeds.
  await using sql = openSql(databaseUrl)
  expect(await sql`select from organizations`).toHaveLength(0)
})
