import { toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { SERVER, writeAudit, type Actor, type AuditRecord } from './audit.ts'

const EVERY_MS = 60_000
/** The most callers with an entry of their own, per organization and minute. */
const MAX_CALLERS = 20
/** The most organizations that are counted in a minute. */
const MAX_TENANTS = 1_000
/** The most actions that an entry names. */
const MAX_ACTIONS = 5
/** Stands for the installation, which has no uuid. */
const INSTALLATION = ''

const log = logger('audit')

/** A request that a role or a scope did not allow, or a refused sign-in. Ids are uuids. */
interface Refusal {
  /**
   * The resource; with the project for a request of an API key. A sign-in belongs to the
   * installation, and counts for the network of its client.
   */
  tenant: { organizationId: string; projectId?: string } | { network: string }
  actor: Actor
  /** True for an account that is not a member of the organization. */
  isStranger?: boolean
  /** The action of /api, the scope of /v1, or the way to sign in. */
  action: string
}

/** Counts refused requests and sign-ins, and writes them to the audit logs once a minute. */
export interface Refusals {
  /** Counts a refusal. It only takes memory, up to a limit. */
  count(refusal: Refusal): void
  /** Writes the entries, and stops. */
  stop(): Promise<void>
}

/** The refusals of one caller in one organization, or in the installation. */
interface Counted {
  refusal: Refusal
  actions: Set<string>
  count: number
}

interface Tenant {
  callers: Map<string, Counted>
  /** Refusals of callers beyond the limit. */
  others: number
}

/**
 * Creates the counter. A caller gets one entry a minute for each organization, and an organization
 * 21 entries at most. The installation gets as many for refused sign-ins.
 */
export function createRefusals(pool: Pool, { everyMs = EVERY_MS } = {}): Refusals {
  let tenants = new Map<string, Tenant>()

  function find(id: string): Tenant | undefined {
    if (!tenants.has(id) && tenants.size >= MAX_TENANTS) return undefined
    const tenant = tenants.get(id) ?? { callers: new Map<string, Counted>(), others: 0 }
    tenants.set(id, tenant)
    return tenant
  }

  function count(refusal: Refusal, times = 1): void {
    const { tenant: of, actor, isStranger, action } = refusal
    const tenant = find('network' in of ? INSTALLATION : of.organizationId)
    if (!tenant) return
    const caller =
      'network' in of
        ? of.network
        : `${actor.token?.id ?? actor.keyId ?? actor.accountId} ${isStranger}`
    const known = tenant.callers.get(caller)
    if (!known && tenant.callers.size >= MAX_CALLERS) {
      tenant.others += times
      return
    }
    const counted = known ?? { refusal, actions: new Set<string>(), count: 0 }
    tenant.callers.set(caller, counted)
    counted.count += times
    if (counted.actions.size < MAX_ACTIONS) counted.actions.add(action)
  }

  async function write(): Promise<void> {
    const counted = tenants
    tenants = new Map()
    try {
      for (const [id, tenant] of counted) {
        const organizationId = id === INSTALLATION ? undefined : id
        await transact(pool, async tx => {
          for (const [actor, record] of toRecords(tenant)) {
            await writeAudit(tx, actor, { ...record, organizationId })
          }
        })
        counted.delete(id)
      }
    } finally {
      for (const [id, tenant] of counted) keep(id, tenant)
    }
  }

  /** Adds counts that could not be written to those since then. */
  function keep(id: string, { callers, others }: Tenant): void {
    for (const { refusal, actions, count: times } of callers.values()) {
      count(refusal, times)
      for (const action of actions) count({ ...refusal, action }, 0)
    }
    const tenant = find(id)
    if (tenant) tenant.others += others
  }

  const { stop } = startLoop({
    everyMs,
    round: write,
    last: write,
    onFailure: reason =>
      log.warning('Refused requests could not be recorded: {reason}', { reason }),
  })
  return { count: refusal => count(refusal), stop }
}

function toRecords({ callers, others }: Tenant): [Actor, AuditRecord][] {
  const records = [...callers.values()].map(toRecord)
  if (others === 0) return records
  return [...records, [SERVER, { action: 'access.othersRefused', details: { count: others } }]]
}

function toRecord({ refusal, actions, count }: Counted): [Actor, AuditRecord] {
  const { tenant, actor, isStranger } = refusal
  if ('network' in tenant) {
    return [actor, { action: 'session.refused', details: { ways: [...actions].join(', '), count } }]
  }
  const details = { actions: [...actions].join(' '), count }
  const { projectId } = tenant
  if (!isStranger) return [actor, { action: 'access.refused', projectId, details }]
  // A name or address would tell the organization about accounts of others.
  const account = toId('per', actor.accountId ?? '')
  return [SERVER, { action: 'access.strangerRefused', details: { account, ...details } }]
}
