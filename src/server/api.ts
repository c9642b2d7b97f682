import { accountRoutes } from '../accounts/account-routes.ts'
import { auditRoutes } from '../accounts/audit-routes.ts'
import type { ApiEndpoint, ApiGate } from '../accounts/endpoint.ts'
import { inviteRoutes, type InviteParts } from '../accounts/invite-routes.ts'
import { memberRoutes } from '../accounts/member-routes.ts'
import { organizationRoutes } from '../accounts/organization-routes.ts'
import { passwordRoutes } from '../accounts/password-routes.ts'
import { projectRoutes } from '../accounts/project-routes.ts'
import { resetRoutes } from '../accounts/reset-routes.ts'
import { sessionRoutes } from '../accounts/session-routes.ts'
import { setupRoutes } from '../accounts/setup-routes.ts'
import { projectChannelRoutes } from '../channels/channel-routes.ts'
import { eventDeletionRoutes } from '../events/deletion-routes.ts'
import { searchRoutes } from '../events/search-routes.ts'
import { userRoutes } from '../identities/user-routes.ts'
import { projectKeyRoutes } from '../keys/key-routes.ts'
import { deliveryRoutes, type DeliveryParts } from '../outbox/delivery-routes.ts'
import { notificationRoutes } from '../push/notification-routes.ts'
import { pushRoutes, type PushRouteParts } from '../push/push-routes.ts'
import { serverRoutes, type ServerParts } from './server-routes.ts'
import { attemptRoutes } from '../webhooks/attempt-routes.ts'
import { webhookRoutes, type WebhookParts } from '../webhooks/webhook-routes.ts'

/** What the endpoints of /api work with. */
export interface ApiParts
  extends
    Pick<ApiGate, 'pool' | 'getSite' | 'getCookies' | 'strangers' | 'hints'>,
    DeliveryParts,
    InviteParts,
    PushRouteParts,
    ServerParts,
    WebhookParts {}

/** Every endpoint of /api: the dashboard's, behind a session. */
export function listApiEndpoints(parts: ApiParts): ApiEndpoint[] {
  return [
    ...accountRoutes(parts),
    ...attemptRoutes(parts),
    ...auditRoutes(parts),
    ...deliveryRoutes(parts),
    ...eventDeletionRoutes(parts),
    ...inviteRoutes(parts),
    ...memberRoutes(parts),
    ...notificationRoutes(parts),
    ...organizationRoutes(parts),
    ...passwordRoutes(parts),
    ...projectChannelRoutes(parts),
    ...projectKeyRoutes(parts),
    ...projectRoutes(parts),
    ...pushRoutes(parts),
    ...resetRoutes(parts),
    ...searchRoutes(parts),
    ...serverRoutes(parts),
    ...sessionRoutes(parts),
    ...setupRoutes(parts),
    ...userRoutes(parts),
    ...webhookRoutes(parts),
  ]
}
