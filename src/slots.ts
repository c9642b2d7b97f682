/** A place among what is under way in one name: of a host, or of a caller. */
export interface Slot {
  release(): void
}

export interface Slots {
  /** Waits for a slot; undefined once `isOver` settles first, and at once where as many wait as may. */
  take(name: string, isOver?: Promise<unknown>): Promise<Slot | undefined>
}

/** At most `each` at a time in each name, first come first served, and `waiting` behind them: one that hangs holds up itself alone. */
export function createSlots(each: number, waiting = Infinity): Slots {
  const names = new Map<string, { taken: number; waiting: Set<() => void> }>()

  function toSlot(name: string): Slot {
    let isReleased = false
    return {
      release() {
        const entry = names.get(name)
        if (isReleased || !entry) return
        isReleased = true
        const [next] = entry.waiting
        if (next) {
          // The next one takes the slot over.
          entry.waiting.delete(next)
          next()
        } else if (--entry.taken === 0) names.delete(name)
      },
    }
  }

  return {
    take(name, isOver) {
      const entry = names.get(name) ?? { taken: 0, waiting: new Set() }
      names.set(name, entry)
      if (entry.taken < each) {
        entry.taken++
        return Promise.resolve(toSlot(name))
      }
      if (entry.waiting.size >= waiting) return Promise.resolve(undefined)
      return new Promise(resolve => {
        const turn = () => resolve(toSlot(name))
        entry.waiting.add(turn)
        void isOver?.then(() => {
          if (entry.waiting.delete(turn)) resolve(undefined)
        })
      })
    },
  }
}
