import { existsSync } from 'node:fs'
import { sendSignal } from '../../src/embedded/processes.ts'
import { listConnected } from '../support/connected.ts'
import { listWorkers, type Exit, type Program } from '../support/process.ts'

/** Counts the workers that have served connections, for servers with several processes. */
export interface Served {
  /** Records the processes with open connections. */
  look(): void
  /** True if every current worker has had a connection. */
  readonly isEverybody: boolean
  readonly figures: Record<string, string>
}

/** `port` is one end of the counted connections, by default the port that the server listens on. */
export function createServed(programs: readonly Program[], port?: number): Served {
  const served = new Set<number>()
  // A killed worker is restarted a moment later.
  const whole = programs.map(program => listLiving(program).length)
  return {
    look() {
      for (const program of programs) {
        const missing = listLiving(program).filter(pid => !served.has(pid))
        if (missing.length === 0) continue
        for (const pid of listConnected(missing, port ?? program.port)) served.add(pid)
      }
    },
    get isEverybody() {
      return programs.every((program, index) => {
        const living = listLiving(program)
        return living.length === whole[index] && living.every(pid => served.has(pid))
      })
    },
    get figures(): Record<string, string> {
      const all = programs.flatMap(listLiving)
      if (all.length === 0) return {}
      const count = all.filter(pid => served.has(pid)).length
      return { 'workers that serve': `${count} of ${all.length}, ${served.size} in all` }
    },
  }
}

/** Returns the running workers of a server; empty if it is a single process. */
export function listLiving(program: Program): number[] {
  return listWorkers(program).filter(pid => existsSync(`/proc/${pid}`))
}

/** Kills a server with all of its workers at once, like a power failure. */
export async function killAll(program: Program): Promise<Exit> {
  const workers = listLiving(program)
  const exited = program.kill('SIGKILL')
  for (const pid of workers) sendSignal(pid, 'SIGKILL')
  return exited
}
