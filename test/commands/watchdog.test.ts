import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isRunning } from '../support/leftovers.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { spawnProgram } from '../support/servers/process.ts'
import { hasTool } from '../support/tools.ts'
import { until } from '../support/until.ts'

const WATCHDOG = resolve(import.meta.dirname, '../../src/cli/watchdog.ts')
const LOG = resolve(import.meta.dirname, '../../src/base/log.ts')

/** Starts with the pid of the process as systemd does, which knows it before the program runs. */
const AS_MAIN = ['sh', '-c', 'WATCHDOG_PID=$$ exec "$@"', 'sh']

/** Counts the messages of each socket. systemd's is a datagram socket with a path, too. */
const LISTENER = `
  use IO::Socket::UNIX; use Socket; $| = 1;
  my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die $!;
  chmod 0777, $ARGV[0]; print "ready\\n";
  while (defined $socket->recv(my $text, 4096)) { print "$text\\n"; }
`

/** Listens as systemd does. */
async function openNotifySocket() {
  const folder = makeFolder()
  chmodSync(folder, 0o755)
  const path = join(folder, 'notify')
  const listener = spawn('perl', ['-e', LISTENER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  listener.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await until(() => text.includes('ready\n'))
  return {
    path,
    count: () => text.split('\n').filter(line => line === 'WATCHDOG=1').length,
    [Symbol.asyncDispose]: async () => void listener.kill(),
  }
}

const FEED = `import { feedWatchdog } from ${JSON.stringify(WATCHDOG)}; feedWatchdog();`

const LOGGING = `import { configureLog } from ${JSON.stringify(LOG)}; configureLog('error', process.stdout);`

/** Hangs the first time. Later it writes its message into a file. */
const HANGING = `#!/bin/sh
cd "$(dirname "$0")"
if mkdir first 2>/dev/null; then echo $$ > hung; exec sleep 600; fi
echo "$1" >> messages
`

test('a message to systemd that hangs is ended, and the next ones are sent', async () => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'systemd-notify'), HANGING, { mode: 0o755 })
  await using program = spawnProgram({
    env: {
      ...{ NOTIFY_SOCKET: join(folder, 'socket'), WATCHDOG_USEC: '2000000' },
      PATH: `${folder}:${process.env['PATH']}`,
    },
    ...{ args: [`${LOGGING} ${FEED} setInterval(() => {}, 1e6)`], program: '-e' },
    container: { enter: AS_MAIN },
  })
  const read = (name: string) => {
    const path = join(folder, name)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }
  await until(() => read('messages').split('WATCHDOG=1\n').length > 2)
  expect(program.output()).toContain('systemd-notify failed')
  const pid = Number(read('hung'))
  expect(pid).toBeGreaterThan(0)
  await until(() => !isRunning(pid))
})

test.skipIf(!hasTool('systemd-notify') || !hasTool('perl'))(
  'systemd gets messages while the event loop runs, and none while it is frozen',
  async () => {
    await using stack = new AsyncDisposableStack()
    const databaseUrl = await cloneDatabase()
    const start = async (script?: string, enter = AS_MAIN) => {
      const socket = stack.use(await openNotifySocket())
      const program = stack.use(
        spawnProgram({
          env: {
            ...(!script && { DATABASE_URL: databaseUrl }),
            ...{ NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '400000' },
          },
          ...(script && { args: [script], program: '-e' }),
          container: { enter },
        }),
      )
      if (enter === AS_MAIN) await until(() => socket.count() >= 2)
      return { ...socket, ...program }
    }
    const stopped = await start()
    const looping = await start(
      `${FEED} process.on('SIGUSR2', () => { console.log('frozen'); for (;;) {} }); setInterval(() => {}, 1e6)`,
    )
    // The watchdog of another unit.
    const other = await start(`${FEED} setInterval(() => {}, 1e6)`, ['env', 'WATCHDOG_PID=1'])
    const control = await start(`${FEED} setInterval(() => {}, 1e6)`)

    stopped.signal('SIGSTOP')
    looping.signal('SIGUSR2')
    await until(() => looping.output().includes('frozen'))
    const frozen = [stopped, looping]
    const before = frozen.map(({ count }) => count())
    const enough = control.count() + 12
    await until(() => control.count() >= enough)
    // One message of each was on its way.
    for (const [n, { count }] of frozen.entries())
      expect(count()).toBeLessThanOrEqual((before[n] ?? 0) + 1)
    stopped.signal('SIGCONT')
    await until(() => stopped.count() > (before[0] ?? 0) + 2)
    expect(other.count()).toBe(0)
  },
)
