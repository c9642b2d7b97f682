/** How the connection to the server stands. */
export type ConnectionState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  | { kind: 'reconnecting'; atMs: number }
  | { kind: 'offline'; sinceMs: number }
  | { kind: 'signed_out' }
  /** The project is gone, or we are no longer among its people. */
  | { kind: 'refused' }

/** Why rows stand still: asked for, or because moving them would take something away from the reader. */
export type PauseReason = 'asked' | 'scrolled' | 'focus' | 'selection'

export interface LiveState {
  link: ConnectionState
  reasons: ReadonlySet<PauseReason>
  /** Events that have arrived and are not shown. */
  waiting: number
}

export type LiveEvent =
  | { type: 'link'; link: ConnectionState }
  | { type: 'pause'; reason: PauseReason }
  | { type: 'release'; reason: PauseReason }
  /** The reader wants to see what is new, whatever held it up. */
  | { type: 'resume' }
  | { type: 'waiting'; count: number }

/** What the pill shows. */
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
      return { ...state, reasons: without(state.reasons, event.reason) }
    case 'resume':
      return state.reasons.size === 0 ? state : { ...state, reasons: new Set() }
    case 'waiting':
      return state.waiting === event.count ? state : { ...state, waiting: event.count }
  }
}

/** Whether what arrives is shown as it comes. It is also while the connection is away: then nothing arrives. */
export function isUnpaused({ reasons }: LiveState): boolean {
  return reasons.size === 0
}

/** A connection that fails is of more interest than a pause; nothing is lost by either. */
export function toPill({ link, reasons, waiting }: LiveState): Pill {
  return link.kind === 'live' && reasons.size > 0 ? { kind: 'paused', waiting } : link
}

/** The pill in words; `toClock` writes a moment as the reader's clock does. */
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
    case 'refused':
      return 'No access'
  }
}

/** Beyond what is kept, the number says no more than that there are many. */
export function toCount(count: number): string {
  return count > 999 ? '999+' : String(count)
}

function keepSince(before: ConnectionState, after: ConnectionState): ConnectionState {
  return before.kind === 'offline' && after.kind === 'offline' ? before : after
}

function without(reasons: ReadonlySet<PauseReason>, reason: PauseReason): Set<PauseReason> {
  return new Set([...reasons].filter(other => other !== reason))
}
