import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { packExecutable, packLauncher } from '../../clients/pack.ts'
import { VERSION } from '../../src/base/version.ts'
import { createBrowser, PASSWORD, WRONG_PASSWORD } from '../support/worlds/browser.ts'
import { createEmptyDatabase } from '../support/servers/postgres.ts'
import {
  BINARY,
  compileBinary,
  findDeno,
  runProgram,
  startProgram,
  type Runtime,
} from '../support/servers/process.ts'
import { startRegistry, type Published } from '../support/servers/npm-registry.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { makeFolder } from '../support/scratch.ts'
import { APP_SECRET } from '../support/secret.ts'
import { boot } from '../support/servers/server.ts'
import { hasTool } from '../support/tools.ts'
import { toRequest } from '../support/clients/raw-http.ts'
import { openSocket } from '../support/clients/socket.ts'
import { scaled } from '../support/until.ts'

const SEAM = join(import.meta.dir, '../support/servers/seam-server.ts')
const EGRESS = join(import.meta.dir, '../support/egress-program.ts')

// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(compileBinary, scaled(300_000))

/** Returns the head of a 400 as it was sent. Clients make the names lower-case. */
async function readHead(url: string, key: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = ['Host: localhost', `Authorization: Bearer ${key}`, 'Content-Length: 0']
  socket.write(toRequest('POST /v1/events HTTP/1.1', lines))
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  const head = String(chunk)
  expect(head).toStartWith('HTTP/1.1 400')
  return head
}

/** Runs a command line of the program to its end. */
function run(runtime: Runtime, args: string[], env: Record<string, string>) {
  return runProgram({ runtime, args, env })
}

describe.each<Runtime>(['bun', 'deno', 'binary'])('on %s', runtime => {
  test('start, key, event, identify, read, command line and stop all work', async () => {
    const databaseUrl = await createEmptyDatabase()
    const owner = { OWNER_EMAIL: 'ada@example.com', OWNER_PASSWORD: PASSWORD }
    const env = { DATABASE_URL: databaseUrl, METRICS_PORT: '0', ...owner }
    const program = await startProgram({ runtime, env })

    // The key that the first start prints works, and a second start prints none.
    const first = createRequests(program.url, program.firstKey!)
    expect((await first.get('/v1/me')).body.data.project.name).toBe('My project')
    const again = await startProgram({ runtime, env })
    expect(again.firstKey).toBeUndefined()
    expect((await again.kill('SIGTERM')).code).toBe(0)

    // This runtime hashed the password, and tells it from a wrong one.
    const browser = createBrowser(program.url)
    expect((await browser.signIn(owner.OWNER_EMAIL, WRONG_PASSWORD)).status).toBe(401)
    expect((await browser.signIn(owner.OWNER_EMAIL)).body.data.organizations).toHaveLength(1)

    const made = await run(runtime, ['keys', 'create', '--name', 'story', '--json'], env)
    expect(made.code).toBe(0)
    const { key } = JSON.parse(made.output) as { key: string }
    const { post, get, request } = createRequests(program.url, key)
    expect(await readHead(program.url, key)).toContain('\r\nX-RateLimit-Limit: 100\r\n')

    const event = {
      channelName: 'Payments',
      title: 'New payment',
      icon: '💰',
      userId: 'ada@example.com',
    }
    const send = () => post('/v1/events', event, { 'idempotency-key': 'story-1' })
    let sent = await send()
    // On a busy machine, a 503 asks to try again with the same key.
    for (let n = 0; n < 5 && sent.status === 503; n++) sent = await send()
    expect(sent.status).toBe(201)
    const replayed = await send()
    expect(replayed.headers.get('x-idempotent-replay')).toBe('true')
    expect(replayed.text).toBe(sent.text)

    const identified = await post('/v1/identify', { user_id: 'ada', aliases: ['ada@example.com'] })
    expect(identified.body.data.aliases).toEqual({ created: ['ada@example.com'] })
    const listed = await get('/v1/events?userId=ada')
    expect(listed.body.data.items).toEqual([{ ...sent.body.data, userId: 'ada' }])

    const broken = await request('/v1/events', {
      method: 'POST',
      json: { title: 5, metadata: [] },
    })
    expect(broken.status).toBe(400)
    expect(broken.body.details.map(({ path }: { path: string[] }) => path)).toEqual([
      ['channelName'],
      ['title'],
      ['metadata'],
    ])
    expect((await request('/v1/events', { method: 'PUT' })).status).toBe(405)
    expect((await fetch(`${program.url}/openapi.json`)).status).toBe(200)
    for (const path of ['', '/sending-events', '/api', '/search.json'])
      expect((await fetch(`${program.url}/docs${path}`)).status).toBe(200)
    expect((await fetch(`${program.url}/readyz`)).status).toBe(200)

    const cli = { TIDINGS_URL: program.url, TIDINGS_API_KEY: key }
    const fromCli = await run(runtime, ['send', 'Backup failed', '--channel', 'ops', '--json'], cli)
    expect(JSON.parse(fromCli.output)).toMatchObject({
      title: 'Backup failed',
      source: 'cli',
      seq: 2,
    })
    expect((await run(runtime, ['send', 'No channel'], cli)).code).toBe(2)
    expect(
      (
        await run(runtime, ['send', 'x', '--channel', 'y'], {
          ...cli,
          TIDINGS_API_KEY: key.slice(1),
        })
      ).code,
    ).toBe(1)

    expect((await program.kill('SIGTERM')).code).toBe(0)
  })
})

describe.each([
  ['bun', process.execPath, []],
  ['deno', findDeno(), ['run', '-A', '--no-check']],
] as const)('the platform seam on %s', (_, command, before) => {
  test('serves HTTP and sockets: data, topics, refusals, close codes, stop', async () => {
    const child = spawn(command, [...before, SEAM], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const port = /PORT (\d+)/.exec(String(line))?.[1]

    const answer = await fetch(`http://127.0.0.1:${port}/path?x=1`)
    expect(await answer.json()).toEqual({ path: '/path', peer: '127.0.0.1' })

    await expect(openSocket(`ws://127.0.0.1:${port}/`)).rejects.toThrow()
    const ada = await openSocket(`ws://127.0.0.1:${port}/?name=ada`)
    expect(await ada.next()).toBe('welcome ada')
    const bob = await openSocket(`ws://127.0.0.1:${port}/?name=bob`)
    expect(await bob.next()).toBe('welcome bob')

    ada.send('hi')
    expect(await ada.next()).toBe('ada: hi')
    expect(await bob.next()).toBe('ada: hi')
    bob.send('close')
    expect(await bob.closed).toBe(1008)
    expect(await ada.next()).toBe('bob left with 1008')

    const long = await openSocket(`ws://127.0.0.1:${port}/?name=long`)
    long.send('x'.repeat(100))
    // Bun closes after an oversized frame without a close frame.
    expect([1006, 1009]).toContain(await long.closed)
    expect(await ada.next()).toStartWith('long left with')

    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await ada.closed).toBe(1001)
    const [code] = (await exited) as [number]
    expect(code).toBe(0)
  })

  test('the guarded client: each fault has its outcome in time, on new and on kept connections', async () => {
    const child = spawn(command, [...before, EGRESS], { stdio: ['ignore', 'pipe', 'inherit'] })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [code] = (await once(child, 'close')) as [number]
    expect(code).toBe(0)
    const expected: Record<string, string> = {
      hang: 'timeout',
      'slow headers': 'timeout',
      drip: '200 true',
      'drip 500': '500 true',
      reset: 'reset',
      cut: '200 true',
      bomb: '200 true',
      flood: '200 true',
      'endless headers': 'protocol',
      'endless hints': 'protocol',
      garbage: 'protocol',
    }
    const all = ['http', 'https'].flatMap(protocol =>
      Object.entries(expected).map(([fault, came]) => [
        `${protocol} ${fault}`,
        [came, '200 true', came],
      ]),
    )
    expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual(Object.fromEntries(all))
  })
})

describe.skipIf(!hasTool('npm'))('@tidings/cli from npm', () => {
  const launcher = makeFolder()
  const executable = makeFolder()
  const pack = (folder: string): Published => {
    const args = ['pm', 'pack', '--gzip-level', '0', '--quiet', '--ignore-scripts']
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    return { folder, tarball: join(folder, basename(stdout.trim())) }
  }
  let packages: Published[]
  beforeAll(() => {
    packLauncher(launcher)
    packExecutable(executable, `${process.platform}-${process.arch}`, BINARY)
    packages = [pack(launcher), pack(executable)]
  })

  /** Runs a command of npm in a folder, with nothing but the registry. */
  async function runNpm(command: string, args: string[], options: NpmOptions) {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: {
        PATH: process.env['PATH'],
        HOME: options.cwd,
        npm_config_registry: options.registry,
        npm_config_cache: join(options.cwd, '.npm'),
        npm_config_audit: 'false',
        npm_config_update_notifier: 'false',
        ...options.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const chunks: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk: Buffer) => (chunks[name] += chunk))
    const [code] = (await once(child, 'close')) as [number]
    return { code, ...chunks }
  }
  interface NpmOptions {
    cwd: string
    registry: string
    env?: Record<string, string>
  }

  test('npx sends an event from an empty folder, and brings only the executable of this platform', async () => {
    await using server = await boot()
    const { key } = await newProject(server)
    using registry = await startRegistry(packages)
    const env = { TIDINGS_URL: server.url, TIDINGS_API_KEY: key }
    const options = { cwd: makeFolder(), registry: registry.url, env }
    const line = ['send', 'From npx', '--channel', 'npx', '--json']
    const sent = await runNpm('npx', ['--yes', '@tidings/cli', ...line], options)
    expect([sent.stderr, sent.code]).toEqual([expect.not.stringContaining('rror'), 0])
    expect(JSON.parse(sent.stdout)).toMatchObject({ title: 'From npx', seq: 1 })
    const tarballs = registry.requested.filter(name => name.endsWith('.tgz'))
    expect(tarballs.toSorted()).toEqual(packages.map(({ tarball }) => basename(tarball)).toSorted())

    // The exit code is that of the executable. The second run uses the cache of the first.
    const refused = await runNpm('npx', ['@tidings/cli', 'send', 'No channel'], options)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('tidings send --help')
  })

  test('both tarballs installed in a folder give the command tidings, and SIGTERM stops it', async () => {
    using registry = await startRegistry([])
    const options = { cwd: makeFolder(), registry: registry.url }
    const tarballs = packages.map(({ tarball }) => tarball)
    const installed = await runNpm('npm', ['install', '--no-fund', ...tarballs], options)
    expect([installed.stderr, installed.code]).toEqual([expect.any(String), 0])
    const version = await runNpm('npx', ['tidings', 'version', '--json'], options)
    expect(JSON.parse(version.stdout)).toMatchObject({ version: VERSION })
    const command = join(options.cwd, 'node_modules/.bin/tidings')
    const child = spawn(command, ['serve'], {
      cwd: options.cwd,
      env: {
        PATH: process.env['PATH'],
        PORT: '0',
        DATABASE_URL: await createEmptyDatabase(),
        APP_SECRET: APP_SECRET.toString('base64'),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    // The greeting is on standard error.
    await new Promise<void>(resolve => {
      child.stderr.on('data', (chunk: Buffer) => String(chunk).includes('is running') && resolve())
    })
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([0, null])
  })

  test('without the package of the platform, the command says how to install it', async () => {
    const { status, stderr } = spawnSync('node', [join(launcher, 'tidings.js'), 'version'], {
      encoding: 'utf8',
    })
    expect(stderr).toBe(
      `@tidings/cli-${process.platform}-${process.arch} is not installed. Run: npm install --include=optional @tidings/cli\n`,
    )
    expect(status).toBe(1)
  })
})

test('reliability §6 a password hashed on one runtime is accepted on the other', () => {
  const script = join(import.meta.dir, '../support/hash-password.ts')
  const hash = (command: string, before: string[], hashes: string[]) => {
    const { stdout } = spawnSync(command, [...before, script, 'crème brûlée', ...hashes])
    return JSON.parse(String(stdout)) as { hash: string; verified: boolean[] }
  }
  const deno: [string, string[]] = [findDeno(), ['run', '-A', '--no-check']]
  const onBun = hash(process.execPath, [], ['garbage', '', '$argon2id$v=19$m=19456,t=2,p=1$AA$BB'])
  expect(onBun.verified).toEqual([false, false, false])
  const onDeno = hash(...deno, [onBun.hash, 'garbage', '$argon2id$x'])
  expect(onDeno.verified).toEqual([true, false, false])
  const again = hash(process.execPath, [], [onDeno.hash, `${onDeno.hash}x`])
  expect(again.verified).toEqual([true, false])
  for (const { hash } of [onBun, onDeno])
    expect(hash).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$')
})
