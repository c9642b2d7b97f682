import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { existsSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readCluster } from '../../../src/database/embedded/cluster.ts'
import { findPostmaster } from '../../../src/database/embedded/postmaster.ts'
import { listClusterProcesses } from '../../../src/database/embedded/processes.ts'
import { SOCKET_FILE } from '../../../src/database/embedded/socket-folder.ts'
import {
  type Container,
  hasContainers,
  NAMESPACES,
  openContainer,
  type Namespace,
} from '../../support/containers.ts'
import { isNamed, makeFolder, clearEmbedded } from '../../support/servers/embedded.ts'
import { isRunning } from '../../support/leftovers.ts'
import { runProgram } from '../../support/servers/process.ts'
import { scaled, until } from '../../support/until.ts'
import {
  listLost,
  makeWrittenFolder,
  spawnWriter,
  type Writer,
  type WriterOptions,
} from '../../support/writer.ts'

afterEach(clearEmbedded)

// Programs that share a data folder and neither processes nor paths: containers.

setDefaultTimeout(scaled(120_000))

const containerTest = test.if(hasContainers && isNamed)
/** Those that decide what a program sees of another one, and all. */
const SETS: Namespace[][] = [['pid'], ['ipc'], [...NAMESPACES]]

const writers: Writer[] = []
const containers: Container[] = []
const folders: string[] = []

afterEach(async () => {
  await Promise.all(writers.splice(0).map(writer => writer.kill()))
  await Promise.all(containers.splice(0).map(container => container.kill()))
  for (const dataDir of folders.splice(0)) {
    await killPostgres(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  }
}, scaled(60_000))

async function makeData(): Promise<string> {
  const dataDir = await makeWrittenFolder()
  folders.push(dataDir)
  return dataDir
}

function write(options: WriterOptions): Writer {
  const writer = spawnWriter(options)
  writers.push(writer)
  return writer
}

async function open(...args: Parameters<typeof openContainer>): Promise<Container> {
  const container = await openContainer(...args)
  containers.push(container)
  return container
}

async function untilWritten(writer: Writer, more = 20): Promise<void> {
  const before = writer.acknowledged().length
  await until(() => writer.acknowledged().length >= before + more, 60_000)
}

const toCluster = (dataDir: string) => readCluster(realpathSync(join(dataDir, 'postgres')))

async function killPostgres(dataDir: string): Promise<void> {
  const pids = listClusterProcesses(toCluster(dataDir))
  for (const pid of pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  await until(() => !pids.some(isRunning))
}

containerTest('a command in other namespaces uses the Postgres of the server', async () => {
  const dataDir = await makeData()
  const server = write({ dataDir, name: 'server' })
  expect(await server.how).toBe('started')
  for (const namespaces of SETS) {
    const container = await open(namespaces)
    const command = write({ dataDir, name: namespaces.join(), rows: 5, container })
    expect([namespaces, await command.how]).toEqual([namespaces, 'attached'])
    await command.exited
    expect(command.output()).toEndWith('stopped\n')
    await untilWritten(server)
  }
  await server.kill()
  await killPostgres(dataDir)
  expect(await listLost(dataDir, writers)).toEqual([])
})

containerTest(
  'a command uses the Postgres of a server in other namespaces, killed or not',
  async () => {
    const dataDir = await makeData()
    const container = await open()
    const server = write({ dataDir, name: 'server', container })
    expect(await server.how).toBe('started')
    await untilWritten(server)
    const first = write({ dataDir, name: 'first', rows: 5 })
    expect(await first.how).toBe('attached')
    await first.exited
    await untilWritten(server)
    // Its Postgres outlives it, and can still be reached.
    await server.kill()
    const second = write({ dataDir, name: 'second', rows: 5, container: await open() })
    expect(await second.how).toBe('attached')
    await second.exited
    await container.kill()
    const third = write({ dataDir, name: 'third', rows: 5 })
    expect(await third.how).toBe('started')
    await third.exited
    expect(await listLost(dataDir, writers)).toEqual([])
  },
)

containerTest('the folder can be mounted at another path', async () => {
  const dataDir = await makeData()
  const elsewhere = makeFolder()
  const container = await open(undefined, `mount --bind ${dataDir} ${elsewhere}`)
  const server = write({ dataDir, name: 'server' })
  expect(await server.how).toBe('started')
  await untilWritten(server)
  const inside = write({ dataDir: elsewhere, name: 'inside', container })
  expect(await inside.how).toBe('attached')
  await untilWritten(inside)
  // The other one takes over, and starts Postgres with its own path.
  await server.kill()
  await killPostgres(dataDir)
  await untilWritten(inside)
  const command = write({ dataDir, name: 'command', rows: 5 })
  expect(await command.how).toBe('attached')
  await command.exited
  await inside.stop()
  expect(existsSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'))).toBe(false)
  expect(await listLost(dataDir, [server, inside, command])).toEqual([])
})

containerTest('a read-only mount is refused, and its Postgres goes on', async () => {
  const dataDir = await makeData()
  const elsewhere = makeFolder()
  const mount = `mount --bind ${dataDir} ${elsewhere}; mount -o remount,bind,ro ${elsewhere}`
  const container = await open(undefined, mount)
  const server = write({ dataDir, name: 'server' })
  expect(await server.how).toBe('started')
  const running = findPostmaster(toCluster(dataDir))?.pid
  for (const where of ['while it runs', 'after it has stopped']) {
    const command = write({ dataDir: elsewhere, name: 'command', rows: 5, container })
    await command.exited
    expect([where, command.output()]).toEqual([where, expect.stringContaining('is read-only')])
    if (where === 'while it runs') {
      expect(findPostmaster(toCluster(dataDir))?.pid).toBe(running)
      await untilWritten(server)
      await server.stop()
    }
  }
  expect(await listLost(dataDir, [server])).toEqual([])
})

containerTest(
  'a disk that runs no programs is named, for a new folder and an old one',
  async () => {
    const disk = makeFolder()
    const old = await makeData()
    const container = await open(
      undefined,
      `mount -t tmpfs -o noexec,mode=0755 tidings ${disk}; cp -a ${old} ${disk}/old`,
    )
    for (const name of ['new', 'old']) {
      const { code, output } = await runProgram({ env: { DATA_DIR: join(disk, name) }, container })
      expect([name, code, output]).toEqual([
        name,
        1,
        expect.stringContaining('Mount the disk without noexec, or choose another DATA_DIR.'),
      ])
    }
  },
)

containerTest(
  'a copy at the same long path does not use the Postgres of the original',
  async () => {
    const copy = await makeData()
    const dataDir = join(makeFolder(), 'long'.repeat(25))
    execFileSync('cp', ['-a', copy, dataDir])
    const server = write({ dataDir, name: 'server' })
    expect(await server.how).toBe('started')
    await untilWritten(server)
    rmSync(copy, { recursive: true })
    execFileSync('cp', ['-a', dataDir, copy])
    const container = await open(['mount'], `mount --bind ${copy} ${dataDir}`)
    const inside = write({ dataDir, name: 'inside', rows: 5, container })
    await inside.exited
    expect(inside.output()).toContain('Choose a shorter DATA_DIR')
    await untilWritten(server)
    await server.stop()
    // A stopped Postgres leaves nothing that the copy must fear.
    const next = write({ dataDir, name: 'next', rows: 5, container })
    expect(await next.how).toBe('started')
    await next.exited
    expect(await listLost(dataDir, [server])).toEqual([])
  },
)

test.if(hasContainers)('a user namespace without a user for Postgres is refused', async () => {
  const dataDir = join(makeFolder(), 'data')
  const enter = ['unshare', '--user', '--map-root-user']
  const container = { enter, isChild: false } as Container
  const command = write({ dataDir, name: 'command', rows: 5, container })
  await command.exited
  expect(command.output()).toContain('has no uid 65534')
})

containerTest('a Postgres whose folder was moved is replaced when nobody uses it', async () => {
  const before = await makeData()
  const server = write({ dataDir: before, name: 'server' })
  await server.how
  await untilWritten(server)
  await server.kill()
  const dataDir = join(makeFolder(), 'data')
  renameSync(before, dataDir)
  folders.splice(0)
  const command = write({ dataDir, name: 'command', rows: 5 })
  expect(await command.how).toBe('started')
  await command.exited
  expect(await listLost(dataDir, [server, command])).toEqual([])
})

test.if(isNamed)('a Postgres that hangs is named, and left alone', async () => {
  const dataDir = await makeData()
  const server = write({ dataDir, name: 'server' })
  await server.how
  await untilWritten(server)
  const { pid } = findPostmaster(toCluster(dataDir))!
  process.kill(pid, 'SIGSTOP')
  const command = write({ dataDir, name: 'command', rows: 5 })
  await command.exited
  process.kill(pid, 'SIGCONT')
  expect(command.output()).toContain('does not answer')
  await untilWritten(server)
  expect(findPostmaster(toCluster(dataDir))?.pid).toBe(pid)
})

containerTest('a Postgres that cannot be reached is neither replaced nor disturbed', async () => {
  const dataDir = await makeData()
  const data = join(dataDir, 'postgres', 'data')
  const container = await open()
  const server = write({ dataDir, name: 'server', container })
  await server.how
  await untilWritten(server)
  // One without a server, whose processes are not visible in the second container.
  await server.kill()
  const other = await open(undefined, `mount --bind /dev/null ${data}/${SOCKET_FILE}`)
  const command = write({ dataDir, name: 'command', rows: 1, container: other })
  await command.exited
  expect(command.refusal()).toContain('Postgres does not answer here')
  expect(command.refusal()).toContain('docker exec')
  const next = write({ dataDir, name: 'next', rows: 5 })
  expect(await next.how).toBe('attached')
  await next.exited
  expect(await listLost(dataDir, [server, next])).toEqual([])
})

containerTest('a server that restarts its Postgres is waited for', async () => {
  const dataDir = await makeData()
  const server = write({ dataDir, name: 'server', container: await open() })
  await server.how
  await untilWritten(server)
  const { pid } = findPostmaster(toCluster(dataDir))!
  process.kill(pid, 'SIGKILL')
  const command = write({ dataDir, name: 'command', rows: 5, container: await open() })
  expect(await command.how).toBe('attached')
  await command.exited
  await untilWritten(server)
  await server.kill()
  expect(await listLost(dataDir, [server, command])).toEqual([])
})
