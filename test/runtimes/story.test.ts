import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chownSync, lstatSync, mkdirSync, readdirSync, truncateSync } from 'node:fs'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBlackBox } from '../support/worlds/black-box.ts'
import { hasContainers, NAMESPACES, openContainer } from '../support/containers.ts'
import { findPid, isNamed, isRoot, makeFolder, clearEmbedded } from '../support/servers/embedded.ts'
import { createRequests } from '../support/worlds/project.ts'
import {
  compileBinary,
  runProgram,
  startProgram,
  type Runtime,
} from '../support/servers/process.ts'
import { scaled, until } from '../support/until.ts'

afterEach(clearEmbedded)

const STORY_MS = 120_000

// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(compileBinary, scaled(300_000))

/** Returns an empty folder that belongs to `uid`. */
function makeEmpty(uid: number): string {
  const folder = makeFolder()
  chownSync(folder, uid, uid)
  return folder
}

/** Returns the folders of unpacked Postgres programs in a DATA_DIR. */
function listUnpacked(dataDir: string): string[] {
  return readdirSync(join(dataDir, 'postgres')).filter(name => /^\d/.test(name))
}

const databaseTest = test.if(isNamed)

describe.each<Runtime>(['bun', 'deno'])('on %s', runtime => {
  databaseTest(
    'one story on its own database: link, key, event, feed, webhook, push, health, stop',
    async () => {
      const folder = makeFolder()
      await runBlackBox(folder, { runtime }, async ({ port }) => {
        const env = { PORT: String(port) }
        // On a busy machine the database may answer late once.
        await until(async () => {
          const { code, output } = await runProgram({ runtime, args: ['health'], env })
          return code === 0 && output.startsWith('{"status":"ready"')
        })
      })
      expect(findPid(join(folder, 'data'))).toBeUndefined()
    },
    STORY_MS,
  )
})

describe('the executable', () => {
  test.if(isNamed && hasContainers)(
    'a command in a container uses the Postgres of a server outside, which keeps running',
    async () => {
      const dataDir = join(makeFolder(), 'data')
      const env = { DATA_DIR: dataDir }
      await using server = await startProgram({ runtime: 'binary', env })
      await using container = await openContainer(NAMESPACES)
      const args = ['keys', 'create', '--name', 'story', '--json']
      const { code, output } = await runProgram({ runtime: 'binary', args, env, container })
      expect({ code, output }).toMatchObject({ code: 0 })
      const { key } = JSON.parse(output) as { key: string }
      const { post } = createRequests(server.url, key)
      const { status } = await post('/v1/events', { channelName: 'payments', title: 'Payment' })
      expect(status).toBe(201)
      expect(server.logged('Postgres had ended')).toEqual([])
      expect((await server.kill('SIGTERM')).code).toBe(0)
      expect(findPid(dataDir)).toBeUndefined()
    },
    STORY_MS,
  )

  // A user other than root can only run programs as itself.
  const accounts = isRoot ? { root: 0, nobody: 65_534 } : { 'who we are': process.getuid?.() ?? 0 }

  test.if(isNamed).each(Object.entries(accounts))(
    'runs the whole story in an empty folder, with no environment, as %s',
    async (_, uid) => {
      const folder = makeEmpty(uid)
      await runBlackBox(folder, { runtime: 'binary', bare: { cwd: folder, uid } })
      expect(findPid(join(folder, 'data'))).toBeUndefined()
    },
    STORY_MS,
  )

  databaseTest(
    'unpacks Postgres once for all that start at once, and again only when it is damaged or another',
    async () => {
      const folder = makeFolder()
      const dataDir = join(folder, 'data')
      const start = () =>
        startProgram({ runtime: 'binary', bare: { cwd: folder }, env: { DATA_DIR: dataDir } })
      // A folder that an older version left behind.
      mkdirSync(join(dataDir, 'postgres', '17.0.0-0123456789ab', 'bin'), { recursive: true })
      const two = await Promise.all([start(), start()])
      const unpacked = listUnpacked(dataDir)
      expect(unpacked).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+[\w.-]*-[0-9a-f]{12}$/)])
      for (const program of two) expect((await program.kill('SIGTERM')).code).toBe(0)

      const program = join(dataDir, 'postgres', unpacked[0]!, 'bin/initdb')
      const { ino, size } = lstatSync(program)
      expect((await (await start()).kill('SIGTERM')).code).toBe(0)
      expect(lstatSync(program).ino).toBe(ino)

      truncateSync(program, 1_000)
      expect((await (await start()).kill('SIGTERM')).code).toBe(0)
      expect(lstatSync(program).size).toBe(size)
      expect(listUnpacked(dataDir)).toEqual(unpacked)
    },
    STORY_MS,
  )

  // Only root can run programs as somebody else.
  test.if(isNamed && hasContainers && isRoot)(
    'refuses the folder of another user, and serves root in it, in a container, too',
    async () => {
      const folder = makeEmpty(65_534)
      const dataDir = join(folder, 'data')
      const bare = { cwd: folder, uid: 65_534 }
      const env = { DATA_DIR: dataDir }
      await using server = await startProgram({ runtime: 'binary', bare, env })
      await using container = await openContainer(NAMESPACES)
      const run = (...become: string[]) =>
        runProgram({
          runtime: 'binary',
          args: ['keys', 'create', '--name', 'story'],
          bare: { cwd: '/' },
          env: { ...env, PATH: process.env['PATH'] ?? '' },
          container: { ...container, enter: [...container.enter, ...become] },
        })
      const refused = await run('setpriv', '--reuid=4242', '--regid=4242', '--clear-groups')
      expect(refused).toMatchObject({ code: 1 })
      expect(refused.output).toContain('belongs to uid 65534. Run Tidings as that user')
      expect(await run()).toMatchObject({ code: 0 })
      expect(server.logged('Postgres had ended')).toEqual([])
      expect((await server.kill('SIGTERM')).code).toBe(0)
    },
    STORY_MS,
  )

  test('ignores .env and bunfig.toml in its working directory', async () => {
    const folder = makeFolder()
    writeFileSync(join(folder, '.env'), 'LOG_LEVEL=loud\n')
    writeFileSync(join(folder, 'bunfig.toml'), 'preload = ["./preload.ts"]\n')
    writeFileSync(join(folder, 'preload.ts'), 'console.log("preloaded")\n')
    const ended = await runProgram({
      runtime: 'binary',
      args: ['health'],
      bare: { cwd: folder },
      env: { PORT: '1' },
    })
    expect(ended.output).toStartWith('http://127.0.0.1:1/readyz does not respond')
    expect(ended.code).toBe(1)
  })
})
