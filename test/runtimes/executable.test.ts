import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  globSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { packExecutable, packLauncher } from '../../clients/pack.ts'
import { hasContainers, NAMESPACES, openContainer } from '../support/containers.ts'
import { clearEmbedded, findPid, isNamed, isRoot, makeFolder } from '../support/servers/embedded.ts'
import { startRegistry, type Published } from '../support/servers/npm-registry.ts'
import { createEmptyDatabase } from '../support/servers/postgres.ts'
import { BINARY, compileBinary, runProgram, startProgram } from '../support/servers/process.ts'
import { boot } from '../support/servers/server.ts'
import { APP_SECRET } from '../support/secret.ts'
import { makeFolder as makeScratch } from '../support/scratch.ts'
import { hasTool } from '../support/tools.ts'
import { scaled } from '../support/until.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'

afterEach(clearEmbedded)
setDefaultTimeout(scaled(120_000))
beforeAll(compileBinary, scaled(300_000))

/** Returns the folders of unpacked Postgres programs in a DATA_DIR. */
function listUnpacked(dataDir: string): string[] {
  return readdirSync(join(dataDir, 'postgres')).filter(name => /^\d/.test(name))
}

test.if(isNamed)(
  'Postgres is unpacked once for all that start at once, and again only when it is damaged',
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
    const program = join(dataDir, 'postgres', unpacked[0]!, 'bin/initdb')
    const { ino, size } = lstatSync(program)
    await using third = await start()
    expect(lstatSync(program).ino).toBe(ino)
    for (const one of [...two, third]) expect((await one.kill('SIGTERM')).code).toBe(0)

    truncateSync(program, 1_000)
    expect((await (await start()).kill('SIGTERM')).code).toBe(0)
    expect(lstatSync(program).size).toBe(size)
    expect(listUnpacked(dataDir)).toEqual(unpacked)
  },
)

// Only root can run programs as somebody else.
test.if(isNamed && hasContainers)(
  'a command in a container uses the Postgres of a server outside, and not as another user',
  async () => {
    const folder = makeFolder()
    const uid = isRoot ? 65_534 : process.getuid!()
    if (isRoot) chownSync(folder, uid, uid)
    const dataDir = join(folder, 'data')
    const env = { DATA_DIR: dataDir }
    await using server = await startProgram({ runtime: 'binary', bare: { cwd: folder, uid }, env })
    await using container = await openContainer(NAMESPACES)
    const run = (...become: string[]) =>
      runProgram({
        runtime: 'binary',
        args: ['keys', 'create', '--name', 'story', '--json'],
        bare: { cwd: '/' },
        env: { ...env, PATH: process.env['PATH'] ?? '' },
        container: { ...container, enter: [...container.enter, ...become] },
      })
    if (isRoot) {
      const refused = await run('setpriv', '--reuid=4242', '--regid=4242', '--clear-groups')
      expect(refused).toMatchObject({ code: 1 })
      expect(refused.output).toContain('belongs to uid 65534. Run Tidings as that user')
    }
    const { code, output } = await run()
    expect({ code, output }).toMatchObject({ code: 0 })
    const { post } = createRequests(server.url, (JSON.parse(output) as { key: string }).key)
    const { status } = await post('/v1/events', { channelName: 'payments', title: 'Payment' })
    expect(status).toBe(201)
    expect(server.logged('Postgres had ended')).toEqual([])
    expect((await server.kill('SIGTERM')).code).toBe(0)
    expect(findPid(dataDir)).toBeUndefined()
  },
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

describe.skipIf(!hasTool('npm'))('@tidings/cli from npm', () => {
  const pack = (folder: string): Published => {
    const args = ['pm', 'pack', '--gzip-level', '0', '--quiet', '--ignore-scripts']
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    return { folder, tarball: join(folder, basename(stdout.trim())) }
  }
  let launcher: string
  let packages: Published[]
  beforeAll(() => {
    launcher = makeScratch()
    const executable = makeScratch()
    packLauncher(launcher)
    packExecutable(executable, `${process.platform}-${process.arch}`, BINARY)
    packages = [pack(launcher), pack(executable)]
  })

  /** Runs npx in a folder, with nothing but the registry. */
  async function runNpx(args: string[], options: NpmOptions) {
    const child = spawn('npx', args, {
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

  test('npx sends an event from an empty folder, brings only the executable of this platform, and passes SIGTERM on', async () => {
    await using server = await boot()
    const { key } = await newProject(server)
    using registry = await startRegistry(packages)
    const cwd = makeScratch()
    const env = { TIDINGS_URL: server.url, TIDINGS_API_KEY: key }
    const options = { cwd, registry: registry.url, env }
    const line = ['send', 'From npx', '--channel', 'npx', '--json']
    const sent = await runNpx(['--yes', '@tidings/cli', ...line], options)
    expect([sent.stderr, sent.code]).toEqual([expect.not.stringContaining('rror'), 0])
    expect(JSON.parse(sent.stdout)).toMatchObject({ title: 'From npx', seq: 1 })
    const tarballs = registry.requested.filter(name => name.endsWith('.tgz'))
    expect(tarballs.toSorted()).toEqual(packages.map(({ tarball }) => basename(tarball)).toSorted())

    // The exit code is that of the executable.
    const [command = ''] = globSync(join(cwd, '.npm/_npx/*/node_modules/.bin/tidings'))
    const refused = spawnSync(command, ['send', 'No channel'], { encoding: 'utf8' })
    expect(refused.status).toBe(2)
    expect(refused.stderr).toContain('tidings send --help')
    const child = spawn(command, ['serve'], {
      cwd,
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
