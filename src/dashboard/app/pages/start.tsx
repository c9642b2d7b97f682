import { useEffect, useState } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { ProjectPageProps } from './props.ts'
import { Rows } from '../feed/rows.tsx'
import { EMPTY_SEARCH } from '../feed/search.ts'
import { useFeed } from '../feed/use-feed.ts'
import { toPill } from '../live/pill.ts'
import { FirstEventCommand } from '../components/first-event-command.tsx'
import { StandalonePage, ErrorNotice } from '../components/standalone-page.tsx'
import { withVerification, VerificationPrompt } from '../components/verification-prompt.tsx'
import { WaveLine } from '../components/artwork.tsx'
import { toFeedPath } from '../paths.ts'
import { createKey as postKey } from '../keys/api.ts'
import type { Failure } from '../request.ts'
import { hasJustSetUp } from '../session.ts'

/** The quick start: a command with a working key, and the first event as it arrives. */
export default function Start({ project }: ProjectPageProps) {
  const { key, isCreating, failure, createKey } = useKey(project)
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
      lead="Run this command in any terminal. Its API key is shown only once. Save it, or create another one later."
    >
      {failure && <ErrorNotice failure={failure} onRetry={createKey} />}
      {!failure && key === undefined && (
        <p>
          <button class="button" type="button" aria-disabled={isCreating} onClick={createKey}>
            {isCreating ? 'Creating a key…' : 'Create a key'}
          </button>
        </p>
      )}
      {key !== undefined && <FirstEventCommand apiKey={key} />}
      <section class="first-event" aria-label="New events">
        <WaveLine kind={kind} />
        <p role="status">
          {arrived.length > 0
            ? 'Your first event has arrived.'
            : kind === 'live'
              ? 'Listening for your first event…'
              : 'Connecting…'}
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
      <VerificationPrompt />
    </StandalonePage>
  )
}

/** Creates a key, which is kept in memory only. Right after setup it is created automatically. */
function useKey(project: string) {
  const [key, setKey] = useState<string>()
  const [isCreating, setCreating] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  async function createKey() {
    setFailure(undefined)
    setCreating(true)
    const result = await withVerification(() => postKey(project, { name: 'Quick start' }))
    setCreating(false)
    if (result.ok) setKey(result.data.key)
    else setFailure(result.failure)
  }
  useEffect(() => {
    if (hasJustSetUp.value) void createKey()
    hasJustSetUp.value = false
  }, [project])
  return { key, isCreating, failure, createKey: () => void (isCreating || createKey()) }
}
