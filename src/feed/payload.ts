import type { Hint } from '../hints.ts'

// Postgres takes 7,999 bytes.
const MAX_BYTES = 7_500
const MAX_EVENT_BYTES = 5_000
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const SEQ = /^[1-9]\d{0,15}$/

/** A hint as one word of a payload; `e:*` says that any project may have news. */
export type Word = string

export function toWord(hint: Hint): Word {
  switch (hint.kind) {
    case 'events':
      return `e:${hint.projectId}`
    case 'deleted':
      return `d:${hint.projectId}:${hint.seq}`
    case 'restored':
      return `r:${hint.projectId}:${hint.seq}`
    case 'unread':
      return `u:${hint.projectId}:${hint.personId}`
    case 'access':
      return 'a'
  }
}

/** Takes out of `words` what one payload has room for. All of them are ASCII. */
export function takePayload(origin: string, words: Set<Word>): string {
  const events = [...words].filter(word => word.startsWith('e:'))
  for (const word of events) words.delete(word)
  const isLong = events.reduce((bytes, word) => bytes + word.length + 1, 0) > MAX_EVENT_BYTES
  let payload = [origin, ...(isLong ? ['e:*'] : events)].join(' ')
  for (const word of words) {
    if (payload.length + 1 + word.length > MAX_BYTES) break
    words.delete(word)
    payload += ` ${word}`
  }
  return payload
}

/** What a payload says. Whoever may connect to the database can send one: what is no hint is passed over. */
export function parsePayload(payload: string): { origin: string; hints: (Hint | 'everything')[] } {
  const [origin = '', ...words] = payload.split(' ')
  return { origin, hints: words.flatMap(word => parseWord(word) ?? []) }
}

function parseWord(word: Word): Hint | 'everything' | undefined {
  if (word === 'a') return { kind: 'access' }
  if (word === 'e:*') return 'everything'
  const [letter, projectId = '', what = ''] = word.split(':')
  if (!UUID.test(projectId)) return undefined
  if (letter === 'e') return { kind: 'events', projectId }
  if (letter === 'u' && UUID.test(what)) return { kind: 'unread', projectId, personId: what }
  if ((letter !== 'd' && letter !== 'r') || !SEQ.test(what)) return undefined
  return { kind: letter === 'd' ? 'deleted' : 'restored', projectId, seq: Number(what) }
}
