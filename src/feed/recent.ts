import type { FeedEvent } from './read.ts'

const MAX_EVENTS = 512
const MAX_CHARACTERS = 128 * 1024

/** The last published events of a project, kept while a client catches up with them. */
export interface Recent {
  /** Every event after this seq that was published is here. */
  readonly floor: number
  keep(event: FeedEvent): void
  after(seq: number): FeedEvent[]
}

/** Begins at `floor`, the seq that was published last. */
export function createRecent(floor: number): Recent {
  const events: FeedEvent[] = []
  let characters = 0
  return {
    get floor() {
      return floor
    },
    keep(event) {
      events.push(event)
      characters += event.text.length
      while (events.length > MAX_EVENTS || characters > MAX_CHARACTERS) {
        const oldest = events.shift()
        if (!oldest) return
        characters -= oldest.text.length
        floor = oldest.seq
      }
    },
    after: seq => events.filter(event => event.seq > seq),
  }
}
