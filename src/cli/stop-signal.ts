import { readFileSync } from 'node:fs'
import { WORKER_VARIABLE } from '../server/workers.ts'

/** Signals within this time count as one. */
const SAME_SIGNAL_MS = 500

/** Resolves at the first signal to stop. A second signal ends the process at once. */
export function waitForStopSignal(): Promise<void> {
  let firstMs: number | undefined
  return new Promise(resolve => {
    const stop = () => {
      // A parent process can forward a signal that the terminal also sent to this process.
      if (firstMs !== undefined && performance.now() - firstMs > SAME_SIGNAL_MS) process.exit(1)
      firstMs ??= performance.now()
      resolve()
    }
    for (const signal of listStopSignals()) process.on(signal, stop)
    // The standard input of a worker ends when its parent ends.
    if (process.env[WORKER_VARIABLE] !== undefined) process.stdin.once('end', stop).resume()
  })
}

/** Returns a controller that aborts at a signal to stop, with the error that `describe` words. */
export function abortOnStopSignal(describe: (name: string) => string): AbortController {
  const stopping = new AbortController()
  for (const name of listStopSignals())
    process.once(name, () => stopping.abort(new Error(describe(name))))
  return stopping
}

/**
 * Returns the signals that stop this process in order. SIGHUP comes when its terminal is closed,
 * and is left out if `nohup` has made the process ignore it.
 */
function listStopSignals(): NodeJS.Signals[] {
  return ['SIGINT', 'SIGTERM', ...(isHangupIgnored() ? [] : (['SIGHUP'] as const))]
}

function isHangupIgnored(): boolean {
  // nohup redirects a terminal to a file.
  if (process.platform !== 'linux') return !process.stdout.isTTY
  const [, mask = '0'] =
    /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return (BigInt(`0x${mask}`) & 1n) === 1n
}
