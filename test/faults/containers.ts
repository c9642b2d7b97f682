import { realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readCluster, type Cluster } from '../../src/database/embedded/cluster.ts'
import { listClusterProcesses, sendSignal } from '../../src/database/embedded/processes.ts'
import { type Container, type Namespace, openContainer } from '../support/containers.ts'
import { listPostmasters } from '../support/postmasters.ts'
import { makeFolder } from '../support/scratch.ts'
import { until } from '../support/until.ts'
import { listLost, makeWrittenFolder, spawnWriter, type Writer } from '../support/writer.ts'
import type { RunResult } from './ledger-check.ts'
import { createRandom, type Random } from './random.ts'
import { scaled } from '../support/until.ts'

const ACTIONS = [
  'start',
  'start',
  'command',
  'command',
  'kill',
  'stop',
  'postmaster',
  'crash',
] as const
type Action = (typeof ACTIONS)[number]

const SHARED: Namespace[][] = [
  ['pid', 'mount'],
  ['pid', 'mount', 'ipc'],
  ['pid', 'mount', 'ipc', 'uts', 'net'],
]
const MAX_ACTIONS = 5
const PAUSE_MS = 400
const MAX_SERVERS = 4
const EXIT_MS = scaled(120_000)
const SAMPLE_MS = 20
/** Permitted refusals. A run also kills Postgres while it starts. */
const REFUSALS = /does not answer here|in another container|did not start: postgres: signal SIGKILL/

/** A container with the data folder, which can be mounted at a path of its own. */
interface Place {
  container: Container
  dataDir: string
}

/**
 * Runs random interleavings in two containers with one data folder: servers start, commands run,
 * and programs, Postgres and whole containers are killed. After each, every row that Postgres has
 * acknowledged must be stored. Two postmasters must never run at once.
 */
export async function runContainers({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const dataDir = await makeWrittenFolder()
  const cluster = readCluster(realpathSync(join(dataDir, 'postgres')))
  const places = [await openPlace(random, dataDir), await openPlace(random, dataDir)]
  const writers: Writer[] = []
  const servers: Writer[] = []
  const counts = new Map<Action, number>()
  const problems: string[] = []
  const sampler = setInterval(() => {
    const pids = listPostmasters(cluster)
    if (pids.length > 1) problems.push(`${pids.length} postmasters run: ${pids.join()}`)
  }, SAMPLE_MS)

  async function act(action: Action): Promise<void> {
    counts.set(action, (counts.get(action) ?? 0) + 1)
    const nth = random.below(places.length)
    const { container, dataDir: folder } = places[nth]!
    const name = `w${writers.length}`
    const takeServer = () => servers.splice(random.below(servers.length), 1)[0]
    switch (action) {
      case 'start':
      case 'command': {
        const isServer = action === 'start' && servers.length < MAX_SERVERS
        const writer = spawnWriter({
          dataDir: folder,
          name,
          container,
          ...(!isServer && { rows: 1 + random.below(10) }),
        })
        writers.push(writer)
        if (isServer) servers.push(writer)
        return
      }
      case 'kill':
        return takeServer()?.kill()
      case 'stop':
        return void takeServer()?.stop()
      case 'postmaster':
        for (const pid of listPostmasters(cluster)) sendSignal(pid, 'SIGKILL')
        return
      case 'crash':
        await container.kill()
        places[nth] = await openPlace(random, dataDir)
    }
  }

  try {
    for (let nth = 0; nth < times; nth++) {
      for (let left = 1 + random.below(MAX_ACTIONS); left > 0; left--) {
        await act(random.pick(ACTIONS))
        await sleep(random.below(PAUSE_MS))
      }
      const ending = writers.filter(writer => !servers.includes(writer))
      await Promise.all(ending.map(writer => untilExited(writer)))
      const lost = await listLost(dataDir, writers)
      if (lost.length > 0) problems.push(`after ${nth}, ${lost.length} rows are lost: ${lost[0]}`)
    }
    await Promise.all(servers.map(server => server.stop()))
    // Nothing is left of Postgres when its last user has stopped, unless it is out of reach.
    await Promise.all(places.map(({ container }) => container.kill()))
    const lost = await listLost(dataDir, writers)
    const refused = writers.filter(writer => writer.refusal() !== undefined)
    problems.push(
      ...refused
        .filter(writer => !REFUSALS.test(writer.refusal() ?? ''))
        .map(writer => `a program failed: ${writer.output().slice(-500)}`),
    )
    const count = (how: string) => writers.filter(one => one.output().startsWith(how)).length
    return {
      figures: {
        interleavings: times,
        ...Object.fromEntries(counts),
        'programs that started Postgres': count('started'),
        'programs that attached': count('attached'),
        'programs that refused': refused.length,
        acknowledged: writers.reduce((sum, writer) => sum + writer.acknowledged().length, 0),
        lost: lost.length,
      },
      problems,
    }
  } finally {
    clearInterval(sampler)
    await Promise.all(writers.map(writer => writer.kill()))
    await Promise.all(places.map(({ container }) => container.kill()))
    await killPostgres(cluster)
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function openPlace(random: Random, dataDir: string): Promise<Place> {
  const namespaces = random.pick(SHARED)
  if (random.below(2) === 0) return { container: await openContainer(namespaces), dataDir }
  const elsewhere = makeFolder()
  const script = `mount --bind ${dataDir} ${elsewhere}`
  return { container: await openContainer(namespaces, script), dataDir: elsewhere }
}

async function untilExited(writer: Writer): Promise<void> {
  const late = sleep(EXIT_MS, 'late', { ref: false })
  if ((await Promise.race([writer.exited, late])) === 'late')
    throw new Error(`A program does not end: ${writer.output().slice(-500)}`)
}

async function killPostgres(cluster: Cluster): Promise<void> {
  await until(() => {
    const pids = listClusterProcesses(cluster)
    for (const pid of pids) sendSignal(pid, 'SIGKILL')
    return pids.length === 0
  })
}
