import type { Config } from '../base/config.ts'
import type { Hints } from '../base/hints.ts'
import type { Database } from '../database/embedded/database.ts'
import type { Pools } from '../database/pool.ts'
import { createEgress, type EgressOptions } from '../http/egress/egress.ts'
import type { DeliveryKind } from '../delivery/outbox/delivery-kind.ts'
import type { Site } from '../http/site.ts'
import { startOutbox } from '../delivery/outbox/outbox.ts'
import { tryToCheckClock } from '../database/clock.ts'
import { WORKER_SETTINGS } from '../database/session.ts'
import { createPushKind } from '../delivery/push/sender.ts'
import { createPushClient } from '../delivery/push/encrypt-and-send.ts'
import { startViewMatcher } from '../delivery/views/view-matches.ts'
import { openSecrets } from '../database/secrets/open-secrets.ts'
import { createTimerKind } from '../delivery/timers/timers.ts'
import { createWebhookKind } from '../delivery/webhooks/sender.ts'

export interface DeliveryOptions {
  /** The DNS resolver and the trusted certificate authorities. */
  egress?: Pick<EgressOptions, 'resolve' | 'ca' | 'listOwnAddresses'>
  /** Replaces the default kinds of delivery. */
  kinds?: readonly DeliveryKind[]
  /** Changes each kind, for example its leases. */
  adjust?(kind: DeliveryKind): DeliveryKind
}

/**
 * Opens the secrets, checks the clock, and starts the outbox. Returns it with the clients and the
 * secrets for outgoing requests.
 */
export async function startDeliveries(
  {
    config,
    database,
    pools,
    site,
    hints,
  }: { config: Config; database: Database; pools: Pools; site: Site; hints: Hints },
  options: DeliveryOptions,
) {
  const pool = pools.open('deliver', 4, { settings: WORKER_SETTINGS })
  // Steps of many projects delay no delivery.
  const timers = pools.open('timer', 2, { settings: WORKER_SETTINGS })
  const secrets = await pool.run(sql => openSecrets(sql, { ...config, dataDir: database.dataDir }))
  const egress = createEgress({
    allowCidrs: config.egressAllowCidrs,
    proxy: config.egressProxy,
    ...options.egress,
  })
  const { pushHosts, vapidSubject } = config
  const push = { pool, secrets, egress, pushHosts, vapidSubject }
  const pushClient = createPushClient(push)
  let matcher: ReturnType<typeof startViewMatcher> | undefined
  const onViews = () => matcher?.wake()
  /** Called after each commit with the projects that have new events. */
  function onAppended(projectIds: ReadonlySet<string>): void {
    // The feed first, because it takes only milliseconds.
    hints.send([...projectIds].map(projectId => ({ kind: 'events', projectId })))
    outbox.wake(projectIds)
  }
  const kinds = options.kinds ?? [
    createPushKind({ ...push, pushClient, site, onViews }),
    createWebhookKind({ pool, secrets, egress, onViews }),
    createTimerKind({ pool: timers, site, egress, secrets, hints, onAppended }),
  ]
  // After a time without a server, deadlines are extended before a delivery can pass them.
  await tryToCheckClock(pool)
  const outbox = await startOutbox({
    pool: pools.open('worker', 4, { settings: WORKER_SETTINGS }),
    kinds: kinds.map(kind => options.adjust?.(kind) ?? kind),
  })
  if (kinds.length > 0) matcher = startViewMatcher(pool, outbox.wakeWorkers)
  return {
    secrets,
    egress,
    outbox,
    pushClient,
    pushHosts,
    onAppended,
    async stop() {
      await Promise.all([outbox.stop(), matcher?.stop()])
      egress.close()
    },
  }
}
