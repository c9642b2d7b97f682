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
  const { said, full } = toState(webhook)
  return (
    <>
      {[said, full].map(
        line =>
          line && (
            <p class="item-about" key={line.before}>
              {line.before}{' '}
              {line.at !== null && <Moment atMs={Date.parse(line.at)} isFar isExact />}
              <bdi>{line.after}</bdi>
            </p>
          ),
      )}
    </>
  )
}
