import { createHash } from 'node:crypto'
import { isRawNumber, toNumberText } from '../../../http/exact-json.ts'
import type { Level } from '../../channels/level.ts'
import { readPath } from '../../events/metadata-values.ts'
import type { State } from '../../events/state.ts'
import type { Hook } from '../schema.ts'

/** A request to a hook. */
export interface Received {
  headers: Pick<Headers, 'get'>
  text: string
  /** The fields of the body. A text that is neither JSON nor a form is the field `text`. */
  body: object
  hook: Pick<Hook, 'id' | 'name' | 'preset' | 'channel' | 'template'>
}

/** An event before its texts are bounded. */
export interface Draft {
  title: string | undefined
  icon?: string | undefined
  description?: string | undefined
  channel?: string | undefined
  level?: string | undefined
  thread?: string | undefined
  state?: string | undefined
  url?: string | undefined
  /** Identifies the delivery, so that one that is repeated makes one event. */
  key?: string | undefined
  /** The states of its thread in which it is no news. Its key then tells of one opening. */
  knownIn?: readonly State[]
  /** True if it can arrive after the end of its thread, which it then does not open. */
  mayBeLate?: boolean | undefined
  /** The whole body if absent. */
  metadata?: object
}

/** Returns the events of a request: none if it is not what the program sends. */
export type Preset = (received: Received) => Draft[]

export function toHash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Returns the text of a scalar at a path such as `alert.labels.name`; undefined if it is blank. */
export function findText(value: unknown, path: string): string | undefined {
  const found = readPath(value, path.split('.'))
  const text = isRawNumber(found)
    ? toNumberText(found)
    : ['string', 'number', 'boolean'].includes(typeof found)
      ? String(found)
      : ''
  return text.trim() === '' ? undefined : text
}

const LEVELS_OF_WORDS: Readonly<Record<string, Level>> = {
  ...{ critical: 'critical', fatal: 'critical', emergency: 'critical', disaster: 'critical' },
  ...{ high: 'high', error: 'high', page: 'high', major: 'high' },
  ...{ normal: 'normal', warning: 'normal', warn: 'normal', minor: 'normal' },
  ...{ low: 'low', info: 'low', none: 'low', debug: 'low' },
}

/** Returns the level for the word of another program, such as `error`. */
export function toLevel(word: string | undefined): Level | undefined {
  return new Map(Object.entries(LEVELS_OF_WORDS)).get(word?.trim().toLowerCase() ?? '')
}
