import { WORKER_VARIABLE } from '../workers.ts'

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
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    // The standard input of a worker ends when its parent ends.
    if (process.env[WORKER_VARIABLE] !== undefined) process.stdin.once('end', stop).resume()
  })
}
