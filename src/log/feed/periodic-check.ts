/** Runs `check` every `everyMs`, and on request. One check runs at a time. */
export function startPeriodicCheck({
  everyMs,
  freshMs,
  check,
  onFailure,
}: {
  everyMs: number
  freshMs: number
  check(): Promise<void>
  onFailure(error: unknown): void
}) {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  let succeededMs = performance.now()
  let isStopped = false

  async function run(): Promise<void> {
    if (isStopped) return
    const startedMs = performance.now()
    try {
      await check()
      succeededMs = startedMs
    } catch (error) {
      onFailure(error)
    }
  }

  function start(): Promise<void> {
    const started = run().finally(() => {
      if (running === started) running = undefined
    })
    running = started
    return started
  }

  function checkNow(): Promise<void> {
    if (!running) return start()
    next ??= running.then(() => {
      next = undefined
      return start()
    })
    return next
  }

  const timer = setInterval(() => void (running ?? checkNow()), everyMs)
  return {
    /** Starts a check, after the running one if any. Resolves when that new check has ended. */
    checkNow,
    /** True if a check that succeeded began within the last `freshMs`. */
    get isFresh() {
      return performance.now() - succeededMs < freshMs
    },
    async stop(): Promise<void> {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}
