import { Moment } from '../parts/moment.tsx'
import type { Webhook } from './calls.ts'
import { toState } from './state.ts'

/** How a webhook is doing, in a word. */
export function StateBadge({ webhook }: { webhook: Webhook }) {
  const { word, tone } = toState(webhook)
  return <span class={`badge badge-${tone}`}>{word}</span>
}

/** And in a sentence, where there is more to say. */
export function StateLine({ webhook }: { webhook: Webhook }) {
  const { said } = toState(webhook)
  if (!said) return null
  const { before, at, after } = said
  return (
    <p class="item-about">
      {before} {at !== null && <Moment atMs={Date.parse(at)} isFar isExact />}
      <bdi>{after}</bdi>
    </p>
  )
}
