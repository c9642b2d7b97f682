import type { Account } from '../../../access/sign-in/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { Icon } from '../components/icon.tsx'
import { MINUTE_MS, useRoute } from '../components/query.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { alarmChanges } from '../live/connection.ts'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import { isAllowed } from '../session.ts'

const ROUTE = '/api/projects/:projectId/silences'

export type Silence = Data<`GET ${typeof ROUTE}`>['items'][number]

/** The silences of a project. Undefined until loaded. */
export function useSilences(project: string) {
  const options = { when: alarmChanges, everyMs: MINUTE_MS, pauseMs: 2_000 }
  return useRoute(`GET ${ROUTE}`, { projectId: project }, options)
}

interface ProjectOptions {
  account: Account
  project: string
}

/** Says that the whole project is silenced, with a button to end that. Nothing if it is not. */
export function ProjectSilence(options: ProjectOptions) {
  return <SilenceLine {...options} items={useSilences(options.project).data?.items} />
}

/** The same, of silences that are loaded. */
export function SilenceLine({
  account,
  project,
  items,
}: ProjectOptions & { items: readonly Silence[] | undefined }) {
  const found = items?.find(one => one.isActive && one.channelId === null)
  return found ? (
    <p class="note silence">
      <Icon name="muted" />
      <strong>Nobody is notified</strong> <SilenceEnd {...found} />
      {isAllowed(account, project, 'member') && <EndButton project={project} silence={found} />}
    </p>
  ) : null
}

/** A button that ends a silence for everybody. */
export function EndButton({ project, silence }: { project: string; silence: Silence }) {
  const { id: silenceId, channelName, thread } = silence
  return (
    <ActionButton
      action="End"
      label={`End the silence of ${toName({ channelName, thread })}`}
      send={() => request(`DELETE ${ROUTE}/:silenceId`, { projectId: project, silenceId })}
      onDone={() => {
        alarmChanges.value += 1
        // The pressed button disappears.
        document.getElementById('content')?.focus({ preventScroll: true })
      }}
    />
  )
}

/** The name of what a silence keeps quiet. */
export function toName({ channelName, thread }: Pick<Silence, 'channelName' | 'thread'>): string {
  return [thread, channelName ?? 'the whole project'].filter(part => part !== null).join(' in ')
}

/** When a silence ends. */
export function SilenceEnd({ endsAt }: Pick<Silence, 'endsAt'>) {
  return endsAt === null ? 'until no thread is open' : <Clock word="until" at={endsAt} />
}

/** A word, and a time with its date on other days. */
export function Clock({ word, at }: { word: string; at: string }) {
  return (
    <>
      {word}&nbsp;
      <Timestamp atMs={Date.parse(at)} hasDate isClockTime />
    </>
  )
}
