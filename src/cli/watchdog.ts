import { spawn } from 'node:child_process'
import { logger } from '../base/log.ts'

/** The messages in each interval of the watchdog, so that one can be late. */
const MESSAGES = 4

const log = logger('watchdog')

/**
 * Tells systemd that the event loop runs, if `WatchdogSec` of the unit asks for it. Without these
 * messages, systemd kills the server and starts it again. `systemd-notify` sends each message,
 * because the runtimes have no datagram sockets with paths.
 */
export function feedWatchdog({ NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID } = process.env): void {
  // The watchdog of another unit can be inherited.
  const isOurs = WATCHDOG_PID === String(process.pid)
  const intervalMs = Number(WATCHDOG_USEC) / 1_000
  if (NOTIFY_SOCKET === undefined || !isOurs || !(intervalMs > 0)) return
  const send = () => {
    const child = spawn('systemd-notify', ['WATCHDOG=1'], {
      stdio: 'ignore',
      // One that hangs is replaced by the next ones, and does not stay.
      timeout: intervalMs / 2,
      killSignal: 'SIGKILL',
    })
    const fail = (problem: string) =>
      log.error('systemd-notify failed, so systemd may end the server: {problem}', { problem })
    child.once('error', error => fail(error.message))
    child.once('exit', (code, name) => code !== 0 && fail(name ?? `exit code ${code}`))
  }
  send()
  setInterval(send, intervalMs / MESSAGES).unref()
}
