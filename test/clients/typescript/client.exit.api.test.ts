import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../support/scratch.ts'
import { findDeno } from '../../support/servers/process.ts'
import { hasTool } from '../../support/tools.ts'
import { scaled } from '../../support/until.ts'
import {
  API_KEY,
  failure,
  startStory,
  success,
  closeServers,
  type Reply,
} from '../../support/worlds/client-story.ts'

afterEach(closeServers)

const ENTRY = join(import.meta.dirname, '../../../clients/typescript/src/client.ts')
/** The queue of the README. `then` is what the program does afterwards. */
const toProgram = (then: string) => `
import { createClient } from './client.js'
const tidings = createClient({
  baseUrl: process.env.TIDINGS_URL,
  apiKey: process.env.TIDINGS_API_KEY,
})
process.once('beforeExit', () => tidings.flush({ timeoutMs: ${scaled(5_000)} }))
process.once('SIGTERM', async () => {
  await tidings.flush({ timeoutMs: ${scaled(5_000)} })
  process.exit()
})
for (const title of ['One', 'Two', 'Three']) tidings.queue({ channelName: 'jobs', title })
${then}`

let folder: string
beforeAll(async () => {
  folder = makeFolder()
  const { outputs } = await Bun.build({ entrypoints: [ENTRY], target: 'browser' })
  writeFileSync(join(folder, 'client.js'), await outputs[0]!.text())
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
  writeFileSync(join(folder, 'ends.js'), toProgram(''))
  writeFileSync(join(folder, 'stays.js'), toProgram('setInterval(() => {}, 1_000)'))
})

const runtimes = [
  ['node', 'node', []],
  ['bun', process.execPath, []],
  ['deno', findDeno(), ['run', '-A', '--no-check']],
] as const

describe.each(runtimes.filter(([name]) => name !== 'node' || hasTool('node')))(
  'on %s',
  (_, command, before) => {
    /** Starts a program whose first attempt fails, so that its events wait. */
    async function start(file: string, failed: Reply) {
      const { server } = await startStory([failed, success({}, 201)])
      const env = { ...process.env, TIDINGS_URL: server.url, TIDINGS_API_KEY: API_KEY }
      const child = spawn(command, [...before, file], { cwd: folder, env, stdio: 'inherit' })
      const ended = once(child, 'exit')
      await server.until(1)
      return { server, child, ended }
    }
    const listTitles = (received: readonly { body: string }[]) =>
      received.map(({ body }) => (JSON.parse(body) as { title: string }).title)

    test('a program that has nothing more to do sends what waits, and ends', async () => {
      const { server, ended } = await start('ends.js', failure(429, {}, { 'Retry-After': '60' }))
      expect(await ended).toEqual([0, null])
      expect(listTitles(server.received).toSorted()).toEqual(['One', 'One', 'Three', 'Two'])
    })

    test('a program that gets SIGTERM sends what waits, and ends', async () => {
      const { server, child, ended } = await start('stays.js', failure(503))
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
      expect(listTitles(server.received).toSorted()).toEqual(['One', 'One', 'Three', 'Two'])
    })
  },
)
