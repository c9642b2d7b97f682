import { spawn } from 'node:child_process'
import { startDeadline } from '../base/functions.ts'
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
  const limitMs = (intervalMs / MESSAGES) * 2
  let isSending = false
  const send = () => {
    if (isSending) return
    isSending = true
    const child = spawn('systemd-notify', ['WATCHDOG=1'], { stdio: 'ignore' })
    let hasEnded = false
    const end = (problem: string | undefined) => {
      if (hasEnded) return
      hasEnded = true
      isSending = false
      endDeadline()
      if (problem)
        log.error('systemd-notify failed, so systemd may end the server: {problem}', { problem })
    }
    // Without it, one that hangs would keep all others from being sent.
    const endDeadline = startDeadline(limitMs, () => {
      child.kill('SIGKILL')
      end(`no exit within ${limitMs} ms`)
    })
    child.once('error', error => end(error.message))
    child.once('exit', code => end(code === 0 ? undefined : `exit code ${code}`))
  }
  send()
  setInterval(send, intervalMs / MESSAGES).unref()
}
