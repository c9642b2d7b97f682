import { channelRoutes } from '../channels/routes.ts'
import type { Pool } from '../db/pool.ts'
import type { Appender } from '../events/append.ts'
import { eventRoutes } from '../events/routes.ts'
import type { Identifier } from '../identities/identify.ts'
import { identityRoutes } from '../identities/routes.ts'
import type { Endpoint } from '../keys/endpoint.ts'
import { keyRoutes } from '../keys/routes.ts'

/** What the endpoints of /v1 work with. */
export interface V1Parts {
  appender: Appender
  identifier: Identifier
  reads: Pool
}

/** Every endpoint of /v1: the applications', behind an API key. */
export function listV1Endpoints(parts: V1Parts): Endpoint[] {
  return [
    ...keyRoutes(parts),
    ...channelRoutes(parts),
    ...identityRoutes(parts),
    ...eventRoutes(parts),
  ]
}
