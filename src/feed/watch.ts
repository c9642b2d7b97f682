/** Runs `look` every `everyMs`, and sooner on request, one look at a time. */
export function startWatch({
  everyMs,
  freshMs,
  look,
  onFailure,
}: {
  everyMs: number
  freshMs: number
  look(): Promise<void>
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
      await look()
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

  function lookSoon(): Promise<void> {
    if (!running) return start()
    next ??= running.then(() => {
      next = undefined
      return start()
    })
    return next
  }

  const timer = setInterval(() => void (running ?? lookSoon()), everyMs)
  return {
    /** Looks as soon as possible. Resolves when a look that begins after the call is over. */
    look: lookSoon,
    /** Whether a look has succeeded within `freshMs`. */
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
