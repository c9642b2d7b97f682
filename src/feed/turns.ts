/** Work of many, so much at a time: who has much of it waits for who has little. */
export interface Turns {
  run<Result>(who: string, work: () => Promise<Result>): Promise<Result>
}

export function createTurns(most: number): Turns {
  // Each of them is served once before the first one is served again: a Map keeps its order.
  const queues = new Map<string, (() => void)[]>()
  let taken = 0

  function startNext(): void {
    const [first] = queues
    if (!first) {
      taken--
      return
    }
    const [who, queue] = first
    queues.delete(who)
    const start = queue.shift()
    if (queue.length > 0) queues.set(who, queue)
    start?.()
  }

  return {
    async run(who, work) {
      if (taken < most) taken++
      else {
        await new Promise<void>(start => {
          const queue = queues.get(who)
          if (queue) queue.push(start)
          else queues.set(who, [start])
        })
      }
      try {
        return await work()
      } finally {
        // The next one takes the turn over.
        startNext()
      }
    },
  }
}
