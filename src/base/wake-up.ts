/** A signal that wakes a sleeping loop. */
export interface WakeUpSignal {
  /** Wakes the loop. If it is not asleep, its next sleep ends at once. */
  send(): void
  /** Wakes the loop in `ms`, unless an earlier wake-up is scheduled. */
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
    // Rounded up, because a timer can fire a fraction of a millisecond early.
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
