/** A place among the requests that are under way to one host. */
export interface Slot {
  release(): void
}

export interface Slots {
  /** Waits for a slot; undefined once `isOver` settles first. */
  take(host: string, isOver: Promise<unknown>): Promise<Slot | undefined>
}

/** At most `perHost` requests at a time to each host, first come first served: one that hangs holds up itself alone. */
export function createSlots(perHost: number): Slots {
  const hosts = new Map<string, { taken: number; waiting: Set<() => void> }>()

  function toSlot(host: string): Slot {
    let isReleased = false
    return {
      release() {
        const entry = hosts.get(host)
        if (isReleased || !entry) return
        isReleased = true
        const [next] = entry.waiting
        if (next) {
          // The next one takes the slot over.
          entry.waiting.delete(next)
          next()
        } else if (--entry.taken === 0) hosts.delete(host)
      },
    }
  }

  return {
    take(host, isOver) {
      const entry = hosts.get(host) ?? { taken: 0, waiting: new Set() }
      hosts.set(host, entry)
      if (entry.taken < perHost) {
        entry.taken++
        return Promise.resolve(toSlot(host))
      }
      return new Promise(resolve => {
        const turn = () => resolve(toSlot(host))
        entry.waiting.add(turn)
        void isOver.then(() => {
          if (entry.waiting.delete(turn)) resolve(undefined)
        })
      })
    },
  }
}
