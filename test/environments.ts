import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { clearFolder } from './support/leftovers.ts'

// `bun test/environments.ts [NAME …] [-- ARGUMENT …]` runs the tests of the last commit in each
// environment where they must pass: other users, paths, tools, folders, time zones and clocks. The
// arguments are those of `bun run test`. Requires root on Linux, to make users and mounts.

interface Environment {
  name: string
  /** Runs as a new user without privileges, with a umask of 077. By default as root. */
  isUser?: boolean
  /** Programs that this environment has not. */
  missing?: string[]
  /** A parent folder for TMPDIR. */
  tmpdir?: string
  /** Keeps one core busy. */
  isBusy?: boolean
  /** The time at the start; needs Debian's packages libfaketime and gcc. */
  clock?: string
  env?: Record<string, string>
}

const TOOLS = [
  ...['chromium', 'chromium-headless-shell', 'go', 'gofmt', 'nginx', 'pgbouncer', 'php'],
  ...['prometheus', 'promtool', 'ruby', 'jq'],
]

const ENVIRONMENTS: Environment[] = [
  { name: 'root' },
  { name: 'user', isUser: true },
  { name: 'user-without-tools', isUser: true, missing: TOOLS },
  { name: 'busy', isBusy: true },
  { name: 'disk', tmpdir: '/var/tmp' },
  { name: 'memory', tmpdir: '/dev/shm' },
  { name: 'kathmandu', env: { TZ: 'Asia/Kathmandu', LANG: 'C' } },
  { name: 'end-of-month', clock: '2028-02-29T23:55:00Z', env: { TZ: 'UTC' } },
  { name: 'summer-time', clock: '2027-03-28T00:55:00Z', env: { TZ: 'Europe/Berlin' } },
]

const ROOT = resolve(import.meta.dirname, '..')
const USER = 'tidings-test'
/** The folder of Debian's packages for users' programs; no tool of this checkout is in it. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const BUN = `npx --yes bun@${process.versions['bun']}`

const words = process.argv.slice(2)
const divider = words.indexOf('--')
const names = divider < 0 ? words : words.slice(0, divider)
const given = divider < 0 ? [] : words.slice(divider + 1)
const unknown = names.filter(name => ENVIRONMENTS.every(one => one.name !== name))
if (unknown.length > 0) throw new Error(`Unknown: ${unknown.join(', ')}`)
if (process.getuid?.() !== 0) throw new Error('Run this as root: it makes users and mounts.')

const results: { name: string; code: number | null; seconds: number; last: string }[] = []
for (const environment of ENVIRONMENTS) {
  if (names.length === 0 || names.includes(environment.name)) {
    results.push(await tryOut(environment))
  }
}
for (const { name, code, seconds, last } of results) {
  console.log(`${code === 0 ? 'ok    ' : 'NOT OK'} ${name}, ${seconds.toFixed(0)} s: ${last}`)
}
process.exit(results.every(({ code }) => code === 0) ? 0 : 1)

async function tryOut(environment: Environment): Promise<(typeof results)[number]> {
  const { name, isUser, missing = [], tmpdir: parent, isBusy, clock, env = {} } = environment
  const folder = mkdtempSync(join(tmpdir(), `tidings-environment-${name}-`))
  chmodSync(folder, 0o755)
  // Everything is below a path with a space.
  const place = join(folder, 'a place')
  const home = join(place, 'home')
  const clone = join(place, 'clone')
  mkdirSync(home, { recursive: true, mode: 0o700 })
  chmodSync(place, 0o755)
  // The registry of this machine.
  const npmrc = join(homedir(), '.npmrc')
  if (existsSync(npmrc)) cpSync(npmrc, join(home, '.npmrc'))
  run('git', 'clone', '--quiet', ROOT, clone)
  const isNewUser = isUser === true && spawnSync('id', [USER]).status !== 0
  if (isNewUser) run('useradd', '--no-create-home', USER)
  if (isUser) {
    run('chown', '-R', USER, place)
  }
  const temporary = parent && mkdtempSync(join(parent, 'tidings-'))
  // As /tmp: the tests of root start Postgres as another user.
  if (temporary) chmodSync(temporary, 0o1777)
  const waits = join(folder, 'waits.so')
  if (clock) {
    const source = join(import.meta.dirname, 'support/waits.c')
    run('cc', '-shared', '-fPIC', '-O2', '-o', waits, source)
  }
  const log = join(folder, 'log')
  const busy = isBusy ? spawn('sh', ['-c', 'while :; do :; done']) : undefined
  const startedMs = performance.now()
  const child = spawn(
    'unshare',
    [
      ...[
        '--mount',
        '--propagation',
        'private',
        'sh',
        '-ec',
        toScript(missing, clock, waits),
        'sh',
      ],
      ...(isUser ? ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'] : []),
      ...['env', '-i', `HOME=${home}`, `PATH=${PATH}`],
      ...Object.entries({ LANG: 'C.UTF-8', ...pick('NODE_EXTRA_CA_CERTS'), ...env }).map(
        ([key, value]) => `${key}=${value}`,
      ),
      ...(temporary ? [`TMPDIR=${temporary}`] : []),
      ...['sh', '-ec', `umask ${isUser ? '077' : '022'}; exec "$@"`, 'sh'],
      ...`${BUN} run test`.split(' '),
      ...given,
    ],
    { cwd: clone, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      appendFileSync(log, chunk)
    })
  }
  console.log(`${name}: ${log}`)
  const [code] = (await once(child, 'close')) as [number | null]
  busy?.kill()
  if (temporary) await clearFolder(temporary)
  await clearFolder(place)
  if (isNewUser) run('userdel', USER)
  const last = output.trim().split('\n').at(-1) ?? ''
  return { name, code, seconds: (performance.now() - startedMs) / 1_000, last }
}

/**
 * Hides programs in a mount namespace, shifts the clock of every process there, and runs the
 * command that follows.
 */
function toScript(missing: string[], clock: string | undefined, waits: string): string {
  const hide = missing.map(
    tool => `if path=$(command -v ${tool}); then mount --bind /dev/null "$(realpath "$path")"; fi`,
  )
  const seconds = clock && Math.round((Date.parse(clock) - Date.now()) / 1_000)
  const shift = `
    library=$(echo /usr/lib/*/faketime/libfaketime.so.1)
    test -e "$library"
    mount -t tmpfs tmpfs /mnt
    mkdir /mnt/upper /mnt/work
    mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
    echo "+${seconds}" > /etc/faketimerc
    echo "${waits} $library" > /etc/ld.so.preload`
  return [...hide, ...(clock ? [shift] : []), 'exec "$@"'].join('\n')
}

function run(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
}

function pick(name: string): Record<string, string> {
  const value = process.env[name]
  return value === undefined ? {} : { [name]: value }
}
