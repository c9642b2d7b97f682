import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { boot } from '../support/servers/server.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { listen } from '../support/loopback.ts'

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
})
