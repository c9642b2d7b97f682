import type { ReadonlySignal } from '@preact/signals'
import { useAction } from '../components/use-action.ts'
import { MINUTE_MS, useRoute } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showResult } from '../components/toast.tsx'
import { useThreadChanges } from '../event/history.tsx'
import type { Log } from '../feed/log.ts'
import { alarmChanges } from '../live/connection.ts'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import type { Role } from '../../../access/guard/permissions.ts'

const ROUTE = '/api/projects/:projectId/events/:eventId/answer'
/** Stands for an answer until it is loaded. */
const WAITING: Data<`GET ${typeof ROUTE}`> = {
  ...{ state: 'waiting', action: null, by: null, at: null, receivedAt: null },
  expiresAt: new Date(0).toISOString(),
}
const ROLES = { members: 'member', admins: 'admin', owners: 'owner' } as const

interface QuestionOptions {
  project: string
  event: {
    id: string
    threadSeq?: number
    actions?: readonly { id: string; label: string }[]
    answer?: { by: keyof typeof ROLES }
  }
  /** The log of the list, which knows of later events of the thread. */
  log: ReadonlySignal<Log>
  /** Returns whether the account has at least this role. */
  may(role: Role): boolean
}

/** The question of an event: a button for each answer, or the answer. */
export function Question({ project, event, log, may }: QuestionOptions) {
  const { id, threadSeq, actions = [], answer: { by: answerers } = { by: 'members' } } = event
  const place = { projectId: project, eventId: id }
  const when = useThreadChanges(log, threadSeq)
  const { data } = useRoute(`GET ${ROUTE}`, place, { when, everyMs: MINUTE_MS })
  const { act, isBusy } = useAction()
  // Its place is kept while it is loading.
  const { state, action, by, at, expiresAt, receivedAt } = data ?? WAITING
  if (state !== 'waiting')
    return (
      <div class="alarm question">
        {state === 'expired' ? (
          <p>Nobody answered in time</p>
        ) : (
          <p>
            Answered by <bdi>{by}</bdi>: <bdi>{actions.find(one => one.id === action)?.label}</bdi>,{' '}
            <Moment at={at ?? expiresAt} />
            <br />
            {receivedAt ? 'Received by the program' : 'Not yet received by the program'}
          </p>
        )}
      </div>
    )
  const isRefused = !may(ROLES[answerers])
  return (
    <div
      class="alarm question"
      role="group"
      aria-label="Answers"
      style={{ visibility: data ? 'visible' : 'hidden' }}
    >
      {actions.map(({ id, label }, at) => (
        <button
          key={id}
          type="button"
          class={at === 0 ? 'button' : 'button answer'}
          aria-disabled={isBusy}
          disabled={isRefused}
          onClick={async () => {
            const result = await act(() => request(`POST ${ROUTE}`, { ...place, action: id }))
            if (result) showResult(result)
            alarmChanges.value += 1
          }}
        >
          <bdi>{label}</bdi>
        </button>
      ))}
      <p>
        {isRefused && `Only ${answerers} can answer. `}
        Can be answered until <Moment at={expiresAt} />
      </p>
    </div>
  )
}
