/** The state of the connection to the server. */
export type ConnectionState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  | { kind: 'reconnecting'; atMs: number }
  | { kind: 'offline'; sinceMs: number }
  | { kind: 'signed_out' }
  /** The server does not start the stream, as with too many subscriptions. */
  | { kind: 'rejected'; reason: string }
  /** The project was deleted, or the account is no longer a member. */
  | { kind: 'refused' }

/** Why the feed is paused: on request, or because moving rows would disturb the reader. */
export type PauseReason = 'manual' | 'scrolled' | 'focus' | 'hover' | 'selection' | 'event'

export interface LiveState {
  link: ConnectionState
  reasons: ReadonlySet<PauseReason>
  /** The number of received events that are not shown. */
  waiting: number
}

export type LiveEvent =
  | { type: 'link'; link: ConnectionState }
  | { type: 'pause'; reason: PauseReason }
  | { type: 'release'; reason: PauseReason }
  /** Ends all pauses. */
  | { type: 'resume' }
  | { type: 'waiting'; count: number }

/** The state that the pill shows. */
export type Pill = ConnectionState | { kind: 'paused'; waiting: number }

export const INITIAL: LiveState = { link: { kind: 'connecting' }, reasons: new Set(), waiting: 0 }

/** The state after `event`; the same object when nothing has changed. */
export function reduce(state: LiveState, event: LiveEvent): LiveState {
  switch (event.type) {
    case 'link':
      return { ...state, link: keepSince(state.link, event.link) }
    case 'pause':
      if (state.reasons.has(event.reason)) return state
      return { ...state, reasons: new Set([...state.reasons, event.reason]) }
    case 'release':
      if (!state.reasons.has(event.reason)) return state
      return { ...state, reasons: new Set([...state.reasons].filter(one => one !== event.reason)) }
    case 'resume':
      return state.reasons.size === 0 ? state : { ...state, reasons: new Set() }
    case 'waiting':
      return state.waiting === event.count ? state : { ...state, waiting: event.count }
  }
}

/** Returns whether new events are shown as they arrive. Also true while disconnected. */
export function isUnpaused({ reasons }: LiveState): boolean {
  return reasons.size === 0
}

/** A failing connection takes precedence over a pause. */
export function toPill({ link, reasons, waiting }: LiveState): Pill {
  return link.kind === 'live' && reasons.size > 0 ? { kind: 'paused', waiting } : link
}

/** The label of the pill; `toClock` formats a time of day. */
export function toLabel(pill: Pill, nowMs: number, toClock: (ms: number) => string): string {
  switch (pill.kind) {
    case 'connecting':
      return 'Connecting'
    case 'live':
      return 'Live'
    case 'paused':
      return pill.waiting === 0 ? 'Paused' : `Paused · ${toCount(pill.waiting)} new`
    case 'reconnecting': {
      const seconds = Math.ceil((pill.atMs - nowMs) / 1000)
      return seconds > 0 ? `Reconnecting in ${seconds} s` : 'Reconnecting'
    }
    case 'offline':
      return `Offline since ${toClock(pill.sinceMs)}`
    case 'signed_out':
      return 'Signed out'
    case 'rejected':
      return `Not live: ${pill.reason}`
    case 'refused':
      return 'No access'
  }
}

/** The count, or "999+". */
export function toCount(count: number): string {
  return count > 999 ? '999+' : String(count)
}

function keepSince(before: ConnectionState, after: ConnectionState): ConnectionState {
  return before.kind === 'offline' && after.kind === 'offline' ? before : after
}
