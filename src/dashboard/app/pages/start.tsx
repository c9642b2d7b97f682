import { useEffect, useState } from 'preact/hooks'
import { effect, signal, useSignal } from '@preact/signals'
import type { ProjectPageProps } from './props.ts'
import { Rows } from '../feed/rows.tsx'
import { EMPTY_SEARCH } from '../feed/search.ts'
import { LivePill } from '../feed/live-pill.tsx'
import { useFeed } from '../feed/use-feed.ts'
import { toPill } from '../live/pill.ts'
import { StandalonePage, ErrorNotice } from '../components/standalone-page.tsx'
import { withVerification } from '../components/verification.ts'
import { VerificationPrompt } from '../components/verification-prompt.tsx'
import { Checklist } from '../first-run/checklist.tsx'
import { SampleDataOffer } from '../first-run/sample-data.tsx'
import { WaveLine } from '../components/artwork.tsx'
import { toFeedPath } from '../paths.ts'
import { useAction } from '../components/use-action.ts'
import { request } from '../request.ts'
import { hasJustSetUp, session } from '../session.ts'
import { CodeBlock } from '../components/copy-button.tsx'
import { Tabs } from '../components/tabs.tsx'
import { readStored, store } from '../storage.ts'
import { SNIPPETS } from '../first-run/snippets.ts'

/** The quick start: a command with a working key, and the first event as it arrives. */
export default function Start({ account, project }: ProjectPageProps) {
  const { key, isBusy, failure, createKey } = useKey(project)
  const feed = useFeed({ project, search: EMPTY_SEARCH })
  const before = useSignal<number>()
  if (before.value === undefined && feed.reading.value.kind === 'nothing') {
    before.value = feed.log.value.rows[0]?.seq ?? 0
  }
  const arrived = feed.log.value.rows.filter(({ seq }) => seq > (before.value ?? Infinity))
  const hadEvents = (before.value ?? 0) > 0
  const { kind } = toPill(feed.live.value)

  return (
    <StandalonePage
      title="Your first event"
      lead={
        key === undefined
          ? 'Create an API key, then run one command with it.'
          : 'Run the command in another terminal, or one of the programs. Its API key is shown only once. Save it, or create another one later.'
      }
    >
      {failure && <ErrorNotice failure={failure} onRetry={createKey} />}
      {!failure && key === undefined && (
        <p>
          <button class="button" type="button" aria-disabled={isBusy} onClick={createKey}>
            {isBusy ? 'Creating a key…' : 'Create a key'}
          </button>
        </p>
      )}
      {key !== undefined && (
        <div data-once>
          <FirstEventTabs apiKey={key} />
        </div>
      )}
      <section class="first-event" aria-label="New events">
        <WaveLine kind={kind} />
        {kind === 'rejected' && <LivePill feed={feed} onResume={() => {}} />}
        <p role="status">
          {arrived.length > 0
            ? hadEvents
              ? 'A new event has arrived.'
              : 'Your first event has arrived.'
            : kind === 'live'
              ? hadEvents
                ? 'Listening for new events…'
                : 'Listening for your first event…'
              : kind === 'rejected'
                ? ''
                : 'Connecting…'}
        </p>
        {arrived.length > 0 && (
          <div role="feed" aria-label="Events" class="stream">
            <Rows project={project} rows={arrived.slice(0, 3)} hasEntrance={() => true} />
          </div>
        )}
      </section>
      <p class="start-ways">
        <a class={arrived.length > 0 ? 'button' : undefined} href={toFeedPath(project)}>
          {arrived.length > 0 ? 'Open the feed' : 'Go to the feed'}
        </a>
        {arrived.length === 0 && before.value === 0 && (
          <SampleDataOffer account={account} project={project} />
        )}
      </p>
      <Checklist account={account} project={project} hasEvent={feed.log.value.rows.length > 0} />
      <VerificationPrompt />
    </StandalonePage>
  )
}

/** The last key of a quick start. A member who returns from another screen finds it again. */
const created = signal<{ project: string; key: string }>()
effect(() => {
  if (session.value.kind !== 'signed_in') created.value = undefined
})

/** Creates a key, which is kept in memory only. Right after setup it is created automatically. */
function useKey(project: string) {
  const key = created.value?.project === project ? created.value.key : undefined
  const { act, isBusy, failure } = useAction()
  async function createKey() {
    const input = { projectId: project, name: 'Quick start' }
    const result = await act(() =>
      withVerification(() => request('POST /api/projects/:projectId/keys', input)),
    )
    if (result?.ok) created.value = { project, key: result.data.key }
  }
  useEffect(() => {
    if (hasJustSetUp.value) void createKey()
    hasJustSetUp.value = false
  }, [project])
  return { key, isBusy, failure, createKey: () => void createKey() }
}

/** The first event in the reader's language, with a working key. */
function FirstEventTabs({ apiKey }: { apiKey: string }) {
  const [chosen, setChosen] = useState(readStored('snippet') ?? '')
  const snippet = SNIPPETS.find(({ name }) => name === chosen) ?? SNIPPETS[0]!

  return (
    <Tabs
      label="Languages"
      tabs={SNIPPETS.map(({ name }) => ({ name, label: name }))}
      chosen={snippet.name}
      onChoose={name => {
        setChosen(name)
        store('snippet', name)
      }}
    >
      <CodeBlock label="First event" text={snippet.toCode(location.origin, apiKey)} />
    </Tabs>
  )
}
