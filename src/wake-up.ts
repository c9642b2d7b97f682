/** Wakes a sleeping loop. */
export interface WakeUpSignal {
  /** Wakes the loop. If it does not sleep, its next sleep ends at once. */
  send(): void
  /** Wakes the loop in `ms`, unless it is to wake earlier. */
  sendIn(ms: number): void
  /** Resolves at the next signal. */
  sleep(): Promise<void>
}

export function createWakeUpSignal(): WakeUpSignal {
  let isSent = false
  let wake: (() => void) | undefined
  let dueMs = Infinity
  let timer: ReturnType<typeof setTimeout> | undefined

  function arm(): void {
    clearTimeout(timer)
    // Rounded up: a timer may be early by a fraction.
    const leftMs = Math.max(0, Math.ceil(dueMs - performance.now()))
    if (dueMs < Infinity) timer = setTimeout(() => wake?.(), leftMs)
  }

  return {
    send() {
      isSent = true
      wake?.()
    },
    sendIn(ms) {
      const atMs = performance.now() + ms
      if (atMs >= dueMs) return
      dueMs = atMs
      if (wake) arm()
    },
    async sleep() {
      if (!isSent) {
        const woken = new Promise<void>(resolve => (wake = resolve))
        arm()
        await woken
        clearTimeout(timer)
      }
      wake = undefined
      isSent = false
      if (dueMs <= performance.now()) dueMs = Infinity
    },
  }
}
