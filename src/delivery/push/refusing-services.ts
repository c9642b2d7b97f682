import { setNewest } from '../../base/functions.ts'
import { logger } from '../../base/log.ts'
import type { Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { findVapidSubject } from './vapid.ts'

/** A push service that refuses the pushes of this server to every device. */
export interface RefusingService {
  /** Its host. */
  service: string
  /** When it last accepted a push; null if it never has. */
  acceptedAt: Date | null
  /** The number of devices that it has refused since. */
  deviceCount: number
  /** Its last response, as a sentence. */
  reason: string
  /** How far its clock is ahead of the database's, in seconds; null if it did not say. */
  aheadS: number | null
}

/** A token is refused if it is over, or ends in more than a day. It is used for up to 11 hours. */
const MAX_SKEW_S = 3_600
/** A push service is named in the log once in this time. */
const REMIND_MS = 3_600_000
/** Many devices can be refused at once. */
const CHECK_MS = 1_000
const MAX_SERVICES = 100

const log = logger('push')

export function listRefusingServices(sql: Queryable): Promise<RefusingService[]> {
  return sql<RefusingService[]>`
    select
      service, accepted_at as "acceptedAt", device_count as "deviceCount", reason, ahead_s as "aheadS"
    from refusing_push_services()
    order by service
  `
}

/** Describes a refusal with its likely cause. `subject` is the contact in tokens. */
export function describeRefusal(
  { service, acceptedAt, deviceCount, reason, aheadS }: RefusingService,
  subject: string | undefined,
): string {
  const devices = deviceCount === 1 ? '1 device' : `${deviceCount} devices`
  const since = acceptedAt === null ? '' : ` since ${acceptedAt.toISOString()}`
  return `${service} accepts no push of this server, and has refused ${devices}${since}. ${reason}. ${toCause(aheadS, subject)}`
}

function toCause(aheadS: number | null, subject: string | undefined): string {
  if (aheadS !== null && Math.abs(aheadS) > MAX_SKEW_S) {
    const hours = (Math.abs(aheadS) / 3_600).toFixed(1)
    return `The likely cause is the clock of the database, which is ${hours} h ${aheadS > 0 ? 'slow' : 'fast'}. Synchronize it with NTP.`
  }
  return subject === undefined
    ? 'The likely cause is the contact, which is missing. Set VAPID_SUBJECT to mailto: followed by your e-mail address.'
    : `The likely cause is the contact, which is ${subject}: set VAPID_SUBJECT to an address that receives mail. Otherwise the devices may have subscribed with another VAPID key: let their members open the dashboard.`
}

/** Returns what logs push services that refuse this server. Call it after each refused push. */
export function createRefusalLog(
  pool: Pool,
  vapidSubject: string | undefined,
): () => Promise<void> {
  const remindedMs = new Map<string, number>()
  let checkedMs = -Infinity
  return async () => {
    const nowMs = performance.now()
    if (nowMs - checkedMs < CHECK_MS) return
    checkedMs = nowMs
    const services = (await pool.run(listRefusingServices)).filter(
      ({ service }) => nowMs - (remindedMs.get(service) ?? -Infinity) > REMIND_MS,
    )
    if (services.length === 0) return
    const subject = await pool.run(sql => findVapidSubject(sql, vapidSubject))
    for (const one of services) {
      setNewest(remindedMs, one.service, nowMs, MAX_SERVICES)
      log.warning('{problem}', { problem: describeRefusal(one, subject) })
    }
  }
}
