import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { listChildren } from './leftovers.ts'

/** The kinds of namespaces that a container can have of its own. */
export const NAMESPACES = ['pid', 'mount', 'ipc', 'net', 'uts'] as const
export type Namespace = (typeof NAMESPACES)[number]

/** Namespaces as those of a container, which programs enter as with `docker exec`. */
export interface Container extends AsyncDisposable {
  /** The words before a command that runs inside. */
  enter: string[]
  /** True if the command is a child of `nsenter`, which passes no signal on. */
  isChild: boolean
  /** Kills every process inside, as the kernel does when a container ends. */
  kill(): Promise<void>
}

// Root makes namespaces itself. Other users need a user namespace, in which they keep their name.
const AS_USER = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user']
const ENTER_AS_USER = AS_USER.length > 0 ? ['--user', '--preserve-credentials'] : []

/** False where this user may not make namespaces. */
export const hasContainers =
  process.platform === 'linux' &&
  spawnSync('unshare', [...toUnshare(NAMESPACES), 'true']).status === 0

/** Opens a container with these namespaces. */
export async function openContainer(
  namespaces: readonly Namespace[] = ['pid', 'mount', 'ipc', 'uts'],
  script = '',
): Promise<Container> {
  const holder = spawn(
    'unshare',
    [...toUnshare(namespaces), 'sh', '-ec', `${script}\necho ready; exec cat`],
    // The container ends with this process, which closes its standard input.
    { stdio: 'pipe' },
  )
  let errors = ''
  holder.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  holder.stdin.on('error', () => {}) // It was killed.
  const exited = once(holder, 'exit')
  const [line] = (await Promise.race([once(holder.stdout, 'data'), exited])) as [unknown]
  if (!String(line).includes('ready')) throw new Error(`No container: ${errors}`)
  const first = listChildren(holder.pid!)[0]!
  const kill = async () => {
    holder.stdin.end()
    // The first process of a PID namespace takes all others with it.
    sendSignal(first, 'SIGKILL')
    await exited
  }
  return {
    enter: [
      'nsenter',
      `--target=${first}`,
      ...ENTER_AS_USER,
      ...namespaces.map(name => `--${name}`),
      `--wd=${process.cwd()}`,
      '--',
    ],
    isChild: namespaces.includes('pid'),
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

function toUnshare(namespaces: readonly Namespace[]): string[] {
  return [
    '--fork',
    '--kill-child',
    ...AS_USER,
    ...namespaces.map(name => `--${name}`),
    ...(namespaces.includes('pid') && namespaces.includes('mount') ? ['--mount-proc'] : []),
  ]
}
