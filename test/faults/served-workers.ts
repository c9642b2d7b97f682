import { existsSync } from 'node:fs'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { listConnectedProcesses } from '../support/connected-processes.ts'
import { listWorkers, type Exit, type Program } from '../support/servers/process.ts'

/** Counts the workers that have served connections, for servers with several processes. */
export interface ServedWorkers {
  /** Records the processes with open connections. */
  sample(): void
  /** True if every current worker has had a connection. */
  readonly isComplete: boolean
  readonly figures: Record<string, string>
}

/** `port` is one end of the counted connections, by default the port that the server listens on. */
export function createServedWorkers(programs: readonly Program[], port?: number): ServedWorkers {
  const served = new Set<number>()
  // A killed worker is restarted a moment later.
  const whole = programs.map(program => listLiveWorkers(program).length)
  return {
    sample() {
      for (const program of programs) {
        const missing = listLiveWorkers(program).filter(pid => !served.has(pid))
        if (missing.length === 0) continue
        for (const pid of listConnectedProcesses(missing, port ?? program.port)) served.add(pid)
      }
    },
    get isComplete() {
      return programs.every((program, index) => {
        const living = listLiveWorkers(program)
        return living.length === whole[index] && living.every(pid => served.has(pid))
      })
    },
    get figures(): Record<string, string> {
      const all = programs.flatMap(listLiveWorkers)
      if (all.length === 0) return {}
      const count = all.filter(pid => served.has(pid)).length
      return { 'workers that serve': `${count} of ${all.length}, ${served.size} in all` }
    },
  }
}

/** Returns the running workers of a server; empty if it is a single process. */
export function listLiveWorkers(program: Program): number[] {
  return listWorkers(program).filter(pid => existsSync(`/proc/${pid}`))
}

/** Kills a server with all of its workers at once, like a power failure. */
export async function killAll(program: Program): Promise<Exit> {
  const workers = listLiveWorkers(program)
  const exited = program.kill('SIGKILL')
  for (const pid of workers) sendSignal(pid, 'SIGKILL')
  return exited
}
