import type { Webhook } from './calls.ts'

/** A sentence around a moment. */
interface Said {
  before: string
  at: string | null
  after: string
}

/** How a webhook is doing. */
export interface State {
  /** In a word or two. */
  word: string
  tone: 'good' | 'bad' | 'plain'
  /** What that means, where there is something to say. */
  said?: Said | undefined
  /** That more waits for it than is kept. */
  full?: Said | undefined
}

export function toState(webhook: Webhook): State {
  const { backlogFullAt = null } = webhook
  const after = ': what happens meanwhile is not queued. Recover it when there is room.'
  const full =
    backlogFullAt === null
      ? undefined
      : { before: 'Too much waits since', at: backlogFullAt, after }
  return { ...toStanding(webhook), full }
}

function toStanding({ isEnabled, disabledAt, disabledReason, breaker }: Webhook): State {
  const { state, failures, failingSince, pausedUntil } = breaker
  const times = `${failures.toLocaleString()} ${failures === 1 ? 'failure' : 'failures in a row'}`
  if (!isEnabled) {
    const why = disabledReason === null ? '' : `: ${disabledReason}`
    const after = `${why}. Nothing is sent until it is enabled.`
    return { word: 'Disabled', tone: 'bad', said: { before: 'Disabled', at: disabledAt, after } }
  }
  if (state === 'paused') {
    const after = `, after ${times}. What waits is sent then.`
    const said = { before: 'Left alone until', at: pausedUntil, after }
    return { word: 'Paused', tone: 'bad', said }
  }
  if (state === 'closed' && failures === 0) return { word: 'On', tone: 'good' }
  const isProbing = state === 'probing'
  const after = isProbing ? '. The pause is over, and the next delivery decides.' : '.'
  const said = { before: `${times} since`, at: failingSince, after }
  return isProbing
    ? { word: 'Trying again', tone: 'plain', said }
    : { word: 'Failing', tone: 'bad', said }
}
