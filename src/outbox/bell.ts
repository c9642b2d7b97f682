/** Lets one loop sleep until there is something to do. */
export interface Bell {
  /** Wakes the loop; when it does not sleep, its next sleep ends at once. */
  ring(): void
  /** The loop is to be awake in so many milliseconds. */
  ringIn(ms: number): void
  /** Resolves at the next ring. */
  sleep(): Promise<void>
}

export function createBell(): Bell {
  let isRung = false
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
    ring() {
      isRung = true
      wake?.()
    },
    ringIn(ms) {
      const atMs = performance.now() + ms
      if (atMs >= dueMs) return
      dueMs = atMs
      if (wake) arm()
    },
    async sleep() {
      if (!isRung) {
        const rung = new Promise<void>(resolve => (wake = resolve))
        arm()
        await rung
        clearTimeout(timer)
      }
      wake = undefined
      isRung = false
      if (dueMs <= performance.now()) dueMs = Infinity
    },
  }
}
