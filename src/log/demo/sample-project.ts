import type { OrganizationCall } from '../../access/organizations/organizations.ts'
import { addProject } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import { InvalidRequest } from '../../http/validation.ts'
import type { Pool } from '../../database/pool.ts'
import { sqlState, UNIQUE_VIOLATION, type Tx } from '../../database/sql.ts'
import type { Appender } from '../events/append.ts'
import { toNewEvent } from '../events/new-event.ts'
import { HOUR_MS } from '../events/time-buckets.ts'
import type { IdentityWriter } from '../identities/identify.ts'
import { addCard } from '../insights/cards.ts'
import { addView } from '../views/views.ts'
import { storeQuestion, toQuestionThread, type QuestionParts } from '../events/question.ts'
import {
  FAILED_JOB,
  listShopEvents,
  listShopStory,
  SHOP_CARDS,
  SHOP_QUESTION,
  SHOP_USERS,
  SHOP_VIEW,
} from './shop.ts'

const SAMPLE_NAME = 'Sample shop'
const DAYS = 28
/** How long ago a member acknowledged the failed job. */
const JOB_ACKNOWLEDGED_MS = 2.8 * HOUR_MS
/** The number of events that are appended at once. Other requests come between. */
const BATCH = 100

/** The parts that fill the project. */
export interface SampleWriters extends Pick<QuestionParts, 'secrets'> {
  appender: Appender
  identityWriter: IdentityWriter
}

/**
 * Creates the project for sample data, with its insights and a view. Returns its uuid. Throws
 * `conflict` if there is one.
 */
export async function addSampleProject(tx: Tx, call: OrganizationCall): Promise<string> {
  const projectId = await addProject(tx, call, SAMPLE_NAME)
  try {
    await tx`update projects set is_sample = true where id = ${projectId}`
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    throw new Fault('conflict', 'This organization has a project with sample data already.')
  }
  const { actor, organizationId, admitted } = call
  for (const card of SHOP_CARDS) await addCard(tx, { actor, organizationId, projectId }, card)
  const member = { accountId: admitted.account.id, role: 'admin' } as const
  await addView(tx, { actor, organizationId, projectId, ...member }, SHOP_VIEW)
  return projectId
}

/** Fills a project with the users of an invented shop, and its events of the last four weeks. */
export async function fillSampleProject(
  { appender, identityWriter, secrets }: SampleWriters,
  {
    organizationId,
    requestId,
    admitted,
    pool,
  }: OrganizationCall & { pool: Pool; requestId: string },
  projectId: string,
): Promise<void> {
  const job = { projectId, requestId, claim: undefined, admission: undefined }
  await Promise.all(
    SHOP_USERS.map(input =>
      identityWriter.identify({ organizationId, projectId, input, requestId, claim: undefined }),
    ),
  )
  const nowMs = Date.now()
  const events = [
    ...listShopEvents(nowMs - DAYS * 24 * HOUR_MS, nowMs),
    ...listShopStory(nowMs),
  ].toSorted((one, other) => one.atMs - other.atMs)
  for (let from = 0; from < events.length; from += BATCH) {
    await Promise.all(
      events.slice(from, from + BATCH).map(({ atMs, event }) =>
        appender.append({
          ...job,
          event: { ...toNewEvent({ ...event, notify: false }), occurredAtMs: atMs },
        }),
      ),
    )
  }
  const acknowledgedAt = new Date(nowMs - JOB_ACKNOWLEDGED_MS)
  await pool.run(
    sql => sql`
      insert into acknowledgements (project_id, thread_seq, id, event_id, account_id, at)
      select t.project_id, t.thread_seq, new_delivery_id(), e.id, ${admitted.account.id}, ${acknowledgedAt}
      from threads t
        join events e on e.project_id = t.project_id and e.seq = t.thread_seq
      where t.project_id = ${projectId} and t.key = ${FAILED_JOB.thread!}
    `,
  )
  const event = toNewEvent({ ...SHOP_QUESTION, notify: false })
  Object.assign(event, toQuestionThread(event))
  const asked = { ...SHOP_QUESTION, secrets }
  try {
    await appender.append({ ...job, event }, (tx, createdAtMs) =>
      storeQuestion(tx, { projectId, event, createdAtMs }, asked),
    )
  } catch (error) {
    // With its projects on several nodes, a server has no questions.
    if (!(error instanceof InvalidRequest)) throw error
  }
}
