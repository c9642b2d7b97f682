import type { Static } from '@sinclair/typebox'
import { useEffect, useState } from 'preact/hooks'
import type { NewApiKey } from '../../../keys/schema.ts'
import { useSignal } from '@preact/signals'
import type { ProjectPageProps } from './props.ts'
import { Rows } from '../feed/rows.tsx'
import { EMPTY_SEARCH } from '../feed/search.ts'
import { useFeed } from '../feed/use-feed.ts'
import { toPill } from '../live/pill.ts'
import { FirstEventCommand } from '../components/first-event-command.tsx'
import { StandalonePage, ErrorNotice } from '../components/standalone-page.tsx'
import { withPasswordPrompt, PasswordPrompt } from '../components/password-prompt.tsx'
import { WaveLine } from '../components/artwork.tsx'
import { toFeedPath } from '../paths.ts'
import { request, type Failure } from '../request.ts'
import { hasJustSetUp } from '../session.ts'

/** From nothing to the first event: a command with a key that works, and the event as it arrives. */
export default function Start({ project }: ProjectPageProps) {
  const { key, isMaking, failure, makeKey } = useKey(project)
  const feed = useFeed({
    project,
    search: EMPTY_SEARCH,
    onUnseen() {},
    onShown() {},
    onChannels() {},
  })
  const before = useSignal<number>()
  if (before.value === undefined && feed.reading.value.kind === 'nothing') {
    before.value = feed.log.value.rows[0]?.seq ?? 0
  }
  const arrived = feed.log.value.rows.filter(({ seq }) => seq > (before.value ?? Infinity))
  const { kind } = toPill(feed.live.value)

  return (
    <StandalonePage
      title="Your first event"
      lead="Run this where you like. The key in it is shown here once: keep it, or make another later."
    >
      {failure && <ErrorNotice failure={failure} onRetry={makeKey} />}
      {!failure && key === undefined && (
        <p>
          <button class="button" type="button" aria-disabled={isMaking} onClick={makeKey}>
            {isMaking ? 'Making a key …' : 'Make a key'}
          </button>
        </p>
      )}
      {key !== undefined && <FirstEventCommand apiKey={key} />}
      <section class="first-event" aria-label="What arrives">
        <WaveLine kind={kind} />
        <p role="status">
          {arrived.length > 0
            ? 'There it is. Tidings is listening.'
            : kind === 'live'
              ? 'Listening for your first event …'
              : 'Connecting …'}
        </p>
        {arrived.length > 0 && (
          <div role="feed" aria-label="Events" class="stream">
            <Rows project={project} rows={arrived.slice(0, 3)} hasEntrance={() => true} />
          </div>
        )}
      </section>
      <p>
        <a class={arrived.length > 0 ? 'button' : undefined} href={toFeedPath(project)}>
          {arrived.length > 0 ? 'Open the feed' : 'Go to the feed'}
        </a>
      </p>
      <PasswordPrompt />
    </StandalonePage>
  )
}

/** A new key of the project; it is in memory alone. Only who has just set up the server gets one unasked. */
function useKey(project: string) {
  const [key, setKey] = useState<string>()
  const [isMaking, setMaking] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  async function makeKey() {
    setFailure(undefined)
    setMaking(true)
    const result = await withPasswordPrompt(() =>
      request<Static<typeof NewApiKey>>(
        'POST',
        `/api/projects/${encodeURIComponent(project)}/keys`,
        {
          name: 'Quick start',
        },
      ),
    )
    setMaking(false)
    if (result.ok) setKey(result.data.key)
    else setFailure(result.failure)
  }
  useEffect(() => {
    if (hasJustSetUp.value) void makeKey()
    hasJustSetUp.value = false
  }, [project])
  return { key, isMaking, failure, makeKey: () => void (isMaking || makeKey()) }
}
