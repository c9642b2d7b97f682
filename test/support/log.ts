import { configureLog } from '../../src/base/log.ts'

/** Server logs matter only when a test fails: TIDINGS_TEST_LOG=debug shows them. */
export function configureTestLog(): void {
  const level = process.env['TIDINGS_TEST_LOG']
  configureLog(level === 'debug' ? 'debug' : 'error', {
    write: line => level && process.stderr.write(line),
  })
}

/** Collects the lines of the log at `warning` and above, until disposed. */
export function captureLog(): Disposable & { lines: string[] } {
  const lines: string[] = []
  configureLog('warning', { write: line => lines.push(line) })
  return { lines, [Symbol.dispose]: configureTestLog }
}
