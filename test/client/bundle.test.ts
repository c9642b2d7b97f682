import { afterAll, beforeAll, expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { findDeno } from '../support/process.ts'
import { startScriptedServer } from '../support/scripted-server.ts'
import { makeFolder } from '../support/scratch.ts'

const run = promisify(execFile)
const KEY = 'tdg_0123456789abcdefghijklmnopqrstuv012345'

// Development does not require Node. Without it, Deno alone shows that the bundle needs no Bun.
const NODE = Bun.which('node')
const RUNTIMES: [string, string, string[]][] = [['deno', findDeno(), ['eval']]]
if (NODE) RUNTIMES.push(['node', NODE, ['--input-type=module', '-e']])

let folder: string
let bundle: string
beforeAll(async () => {
  folder = makeFolder()
  bundle = join(folder, 'client.mjs')
  // The command of `bun run build:client`.
  await run(
    process.execPath,
    ['build', 'src/client/client.ts', '--minify', '--target=browser', `--outfile=${bundle}`],
    { cwd: resolve(import.meta.dir, '../..') },
  )
})
afterAll(() => rm(folder, { recursive: true }))

test('the bundle imports nothing and is at most 3 KB, minified and gzipped', async () => {
  const text = await readFile(bundle, 'utf8')
  expect(text).toContain('/v1/events')
  expect(text).not.toMatch(/\b(import|require)\b|\bfrom\s*["']/)
  expect(gzipSync(text).length).toBeLessThanOrEqual(3072)
})

test.each(RUNTIMES)('the bundle runs on %s', async (_, command, before) => {
  const server = await startScriptedServer({
    status: 201,
    body: { success: true, data: { id: 'evt_1' }, requestId: crypto.randomUUID() },
  })
  const { stdout } = await run(command, [
    ...before,
    `import { createClient } from ${JSON.stringify(`file://${bundle}`)}
    const tidings = createClient({ baseUrl: '${server.url}', apiKey: '${KEY}' })
    console.log((await tidings.events.create({ channelName: 'a', title: 'b' })).id)`,
  ])
  expect(stdout.trim()).toBe('evt_1')
  await server.close()
})
