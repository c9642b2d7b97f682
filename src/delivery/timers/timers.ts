import type { Hint } from '../../base/hints.ts'
import { toArray } from '../../database/arrays.ts'
import { transact } from '../../database/pool.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import type { Site } from '../../http/site.ts'
import { FIRST_CALLBACK } from '../../log/events/question.ts'
import { stepHeartbeat } from '../heartbeats/heartbeat-step.ts'
import type { DeliveryAttempt, DeliveryKind, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { sendCallback, stepExpiry, type CallbackParts } from '../questions/question-steps.ts'
import { stepRule } from '../rules/rule-step.ts'
import { stepSilence } from '../silences/silence-end.ts'
import { stepAlarm } from './alarm-step.ts'

/** A timer that is due, in the transaction of its step. */
interface Step {
  tx: Tx
  attempt: DeliveryAttempt
  siteUrl: string
  /** Called by a step that appends an event, with hints to send after the commit. */
  noteAppended(...hints: Hint[]): void
}

const EXPIRY = 'Expiry of a question'
const CALLBACK = 'Callback of an answer'
/** The names of the timers of events, by the last digits of their targets. */
const NAMES = ['Repetition', 'Stage 1', 'Stage 2', 'Stage 3', EXPIRY]

/** The steps of timers that belong to no event, by the table that has the id of the timer. */
const OWNED: Record<string, (step: Step) => Promise<DeliveryOutcome>> = {
  rules: stepRule,
  silences: ({ tx, attempt }) => stepSilence(tx, attempt),
  heartbeats: ({ tx, attempt, noteAppended }) => stepHeartbeat(tx, attempt, noteAppended),
}

/**
 * Creates the kind of timers. They are due at a time, and each attempt is a step: a transaction
 * that reads the present state, enqueues pushes or appends events. A step that is made again tells
 * nobody twice.
 */
export function createTimerKind({
  site,
  onAppended,
  ...parts
}: CallbackParts & {
  site: Site
  onAppended(projectIds: ReadonlySet<string>): void
}): DeliveryKind {
  async function step(given: Step): Promise<DeliveryOutcome> {
    const { tx, attempt, noteAppended } = given
    if (toName(attempt) === EXPIRY) return stepExpiry(tx, attempt, noteAppended)
    if (attempt.eventId !== attempt.targetId) return stepAlarm(tx, attempt)
    const owner = await findOwner(tx, attempt)
    return (
      OWNED[owner ?? '']?.(given) ?? {
        kind: 'cancelled',
        reason: 'Its owner was removed',
      }
    )
  }

  return {
    name: 'timer',
    async send(attempt, signal) {
      if (toName(attempt) === CALLBACK) return sendCallback(parts, attempt, signal)
      let hasAppended = false
      let hints: Hint[] = []
      const outcome = await transact(parts.pool.of(attempt.projectId), tx => {
        hasAppended = false
        const noteAppended = (...noted: Hint[]) => {
          hasAppended = true
          hints = noted
        }
        return step({ tx, attempt, siteUrl: site.url, noteAppended })
      })
      if (hasAppended) onAppended(new Set([attempt.projectId]))
      if (hints.length > 0) parts.hints.send(hints)
      return outcome
    },
    getTargetNames,
    schedule: [0],
    perTarget: 4,
    timeoutMs: 10_000,
    leaseMs: 30_000,
  }
}

/** Returns the table that a timer without an event belongs to. Undefined if its row is gone. */
async function findOwner(tx: Tx, { projectId, eventId: id }: DeliveryAttempt) {
  const [found] = await tx<{ owner: string }[]>`
    select 'silences' as owner from silences where project_id = ${projectId} and id = ${id}
    union all
    select 'heartbeats' from heartbeats where project_id = ${projectId} and id = ${id}
    union all
    select 'rules' from rules where project_id = ${projectId} and id = ${id}
  `
  return found?.owner
}

/** Returns the names of timers. Those of alarms are in the last digits of their targets. */
async function getTargetNames(
  sql: Queryable,
  { projectId, targetIds }: { projectId: string; targetIds: readonly string[] },
) {
  const owners = await sql<{ id: string; name: string }[]>`
    select id, name from heartbeats where project_id = ${projectId} and id = any(${toArray(targetIds)}::uuid[])
    union all
    select id, name from rules where project_id = ${projectId} and id = any(${toArray(targetIds)}::uuid[])
  `
  const names = new Map(owners.map(({ id, name }) => [id, name]))
  return new Map(targetIds.map(id => [id, names.get(id) ?? toName({ projectId, targetId: id })]))
}

/** Returns the name of a timer, which says what it is for. */
function toName({ projectId, targetId }: Pick<DeliveryAttempt, 'projectId' | 'targetId'>) {
  if (targetId.slice(0, -4) !== projectId.slice(0, -4)) return 'End of a silence'
  const number = Number(targetId.slice(-4))
  return number >= FIRST_CALLBACK ? CALLBACK : (NAMES[number] ?? 'Timer')
}
