/** Looks again and again, and sooner when asked; one look at a time. */
export interface Watch {
  /** Looks as soon as may be; resolves when a look that begins after now is over. */
  look(): Promise<void>
  /** Whether a look has succeeded within `freshMs`. */
  readonly isFresh: boolean
  stop(): Promise<void>
}

export interface WatchOptions {
  everyMs: number
  freshMs: number
  look(): Promise<void>
  onFailure(error: unknown): void
}

export function startWatch({ everyMs, freshMs, look, onFailure }: WatchOptions): Watch {
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
    look: lookSoon,
    get isFresh() {
      return performance.now() - succeededMs < freshMs
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}
