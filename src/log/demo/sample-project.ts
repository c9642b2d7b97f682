import type { OrganizationCall } from '../../access/organizations/organizations.ts'
import { addProject } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import { sqlState, UNIQUE_VIOLATION, type Tx } from '../../database/sql.ts'
import type { Appender } from '../events/append.ts'
import { toNewEvent } from '../events/new-event.ts'
import { HOUR_MS } from '../events/time-buckets.ts'
import type { IdentityWriter } from '../identities/identify.ts'
import { addCard } from '../insights/cards.ts'
import { addView } from '../views/views.ts'
import { listShopEvents, SHOP_CARDS, SHOP_OUTAGE, SHOP_USERS, SHOP_VIEW } from './shop.ts'

const SAMPLE_NAME = 'Sample shop'
const DAYS = 28
/** The number of events that are appended at once. Other requests come between. */
const BATCH = 100
/** How long ago the outage was, so that it is among the newest events. */
const OUTAGE_AGE_MS = 30 * 60_000

/** The writers that fill the project. */
export interface SampleWriters {
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
  { appender, identityWriter }: SampleWriters,
  {
    organizationId,
    projectId,
    requestId,
  }: Pick<OrganizationCall, 'organizationId'> & { projectId: string; requestId: string },
): Promise<void> {
  await Promise.all(
    SHOP_USERS.map(input =>
      identityWriter.identify({ organizationId, projectId, input, requestId, claim: undefined }),
    ),
  )
  const nowMs = Date.now()
  const outage = { atMs: nowMs - OUTAGE_AGE_MS, event: SHOP_OUTAGE }
  const events = [...listShopEvents(nowMs - DAYS * 24 * HOUR_MS, nowMs), outage].toSorted(
    (one, other) => one.atMs - other.atMs,
  )
  for (let from = 0; from < events.length; from += BATCH) {
    await Promise.all(
      events.slice(from, from + BATCH).map(({ atMs, event }) =>
        appender.append({
          projectId,
          event: { ...toNewEvent({ ...event, notify: false }), occurredAtMs: atMs },
          requestId,
          claim: undefined,
          admission: undefined,
        }),
      ),
    )
  }
}
