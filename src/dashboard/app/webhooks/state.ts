import type { Webhook } from './calls.ts'

/** How a webhook is doing. */
export interface State {
  /** In a word or two. */
  word: string
  tone: 'good' | 'bad' | 'plain'
  /** What that means; undefined where there is nothing to say. */
  said: string | undefined
  /** The moment that it is about. */
  at: string | null
}

export function toState({ isEnabled, disabledAt, disabledReason, breaker }: Webhook): State {
  const { state, failures, failingSince, pausedUntil } = breaker
  const times = `${failures.toLocaleString()} ${failures === 1 ? 'failure' : 'failures in a row'}`
  if (!isEnabled) {
    const said = `${disabledReason ?? 'It was disabled'}. Nothing is sent until it is enabled.`
    return { word: 'Disabled', tone: 'bad', said, at: disabledAt }
  }
  if (state === 'paused') {
    const said = `${times}, so it is left alone for a while. What waits is sent afterwards, from:`
    return { word: 'Paused', tone: 'bad', said, at: pausedUntil }
  }
  if (state === 'probing') {
    const said = `${times}. The pause is over and the next delivery decides. It has failed since:`
    return { word: 'Trying again', tone: 'plain', said, at: failingSince }
  }
  if (failures > 0) {
    return {
      word: 'Failing',
      tone: 'bad',
      said: `${times}. It has failed since:`,
      at: failingSince,
    }
  }
  return { word: 'On', tone: 'good', said: undefined, at: null }
}
