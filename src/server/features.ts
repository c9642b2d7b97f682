import { accountRoutes } from '../access/account/account-routes.ts'
import { auditRoutes } from '../access/organizations/audit-routes.ts'
import { createSessionGuard, type SessionGuardOptions } from '../access/guard/guard.ts'
import { inviteRoutes } from '../access/organizations/invite-routes.ts'
import { memberRoutes } from '../access/organizations/member-routes.ts'
import { organizationRoutes } from '../access/organizations/organization-routes.ts'
import { passwordRoutes } from '../access/sign-in/password-routes.ts'
import { projectRoutes } from '../access/organizations/project-routes.ts'
import { resetLinkRoutes } from '../access/organizations/reset-link-routes.ts'
import { resetRoutes } from '../access/sign-in/reset-routes.ts'
import { sessionRoutes } from '../access/sign-in/session-routes.ts'
import { setupRoutes } from '../access/sign-in/setup-routes.ts'
import { sampleProjectRoutes } from '../log/demo/routes.ts'
import type { SampleWriters } from '../log/demo/sample-project.ts'
import { projectChannelRoutes, type ProjectChannelParts } from '../log/channels/project-routes.ts'
import { channelRoutes } from '../log/channels/v1-routes.ts'
import { listIssuers } from '../base/config/openid.ts'
import type { Hints } from '../base/hints.ts'
import type { Pool } from '../database/pool.ts'
import type { Appender } from '../log/events/append.ts'
import { eventDeletionRoutes } from '../log/events/deletion-routes.ts'
import { eventRoutes } from '../log/events/v1-routes.ts'
import type { QuestionParts } from '../log/events/question.ts'
import { ntfyRoutes } from '../log/ntfy/routes.ts'
import { searchRoutes, type SearchParts } from '../log/events/search-routes.ts'
import type { Eraser } from '../log/identities/erasure.ts'
import { hookRoutes } from '../log/hooks/hook-routes.ts'
import { inRoutes } from '../log/hooks/in-routes.ts'
import type { ReceiveParts } from '../log/hooks/receive.ts'
import { insightRoutes } from '../log/insights/routes.ts'
import type { InFlightRequests } from '../http/limits/idempotency.ts'
import type { Quotas } from '../http/limits/quotas.ts'
import type { IdentityWriter } from '../log/identities/identify.ts'
import { identityRoutes } from '../log/identities/v1-routes.ts'
import { viewRoutes, type ViewParts } from '../log/views/routes.ts'
import { userRoutes, type UserRouteParts } from '../log/identities/user-routes.ts'
import { createKeyGuard, type KeyGuardOptions } from '../access/keys/guard.ts'
import { projectKeyRoutes } from '../access/keys/key-routes.ts'
import { currentKeyRoutes } from '../access/keys/v1-routes.ts'
import { acknowledgementRoutes } from '../delivery/acknowledgements/acknowledgement-routes.ts'
import { mcpRoutes } from '../delivery/mcp/routes.ts'
import { deliveryRoutes, type DeliveryParts } from '../delivery/outbox/delivery-routes.ts'
import { heartbeatRoutes, type HeartbeatParts } from '../delivery/heartbeats/routes.ts'
import { passkeyRoutes } from '../access/passkeys/routes.ts'
import { passkeySignInRoutes } from '../access/passkeys/sign-in-routes.ts'
import { secondFactorRoutes } from '../access/second-factor/routes.ts'
import { codeSignInRoutes } from '../access/second-factor/sign-in-routes.ts'
import { notificationRoutes } from '../delivery/push/notification-routes.ts'
import { pushRoutes, type PushRouteParts } from '../delivery/push/push-routes.ts'
import { projectRuleRoutes, type RuleParts } from '../delivery/rules/routes.ts'
import type { AnswerWaits } from '../delivery/questions/answer-waits.ts'
import { answerRoutes } from '../delivery/questions/routes.ts'
import { keyAnswerRoutes } from '../delivery/questions/v1-routes.ts'
import { silenceRoutes } from '../delivery/silences/routes.ts'
import { keySilenceRoutes } from '../delivery/silences/v1-routes.ts'
import { overviewRoutes } from '../log/overview/routes.ts'
import { callbackRoutes } from '../access/openid/callback-routes.ts'
import { connectionRoutes } from '../access/openid/connection-routes.ts'
import { logoutRoutes } from '../access/openid/logout-routes.ts'
import { providerRoutes, type OpenidParts } from '../access/openid/provider-routes.ts'
import { proxyRoutes } from '../access/openid/proxy-routes.ts'
import { ruleRoutes } from '../access/openid/rule-routes.ts'
import { visitRoutes } from '../access/openid/visit-routes.ts'
import { tokenRoutes } from '../access/tokens/token-routes.ts'
import { onDutyRoutes } from '../delivery/timers/on-duty-routes.ts'
import { attemptRoutes } from '../delivery/webhooks/attempt-routes.ts'
import { webhookRoutes, type WebhookParts } from '../delivery/webhooks/webhook-routes.ts'
import { serverRoutes, type ServerParts } from './server-routes.ts'

/** The dependencies of the features under /api. */
type ApiParts = SessionGuardOptions &
  Omit<
    DeliveryParts &
      HeartbeatParts &
      OpenidParts &
      ProjectChannelParts &
      PushRouteParts &
      RuleParts &
      SampleWriters &
      SearchParts &
      ServerParts &
      UserRouteParts &
      ViewParts &
      WebhookParts,
    'guard'
  > & { onAppended(projectIds: ReadonlySet<string>): void }

/**
 * Lists the features under /api, for the dashboard and for programs. They require a session or a
 * management token.
 */
export function listApiFeatures(gate: ApiParts) {
  const guard = createSessionGuard(gate)
  const issuers = listIssuers(gate.providers, gate.hasProxyHeader)
  const parts = { ...gate, issuers, guard }
  return [
    accountRoutes(parts),
    acknowledgementRoutes(parts),
    answerRoutes(parts),
    attemptRoutes(parts),
    auditRoutes(parts),
    connectionRoutes(parts),
    deliveryRoutes(parts),
    eventDeletionRoutes(parts),
    heartbeatRoutes(parts),
    hookRoutes(parts),
    insightRoutes(parts),
    inviteRoutes(parts),
    memberRoutes(parts),
    notificationRoutes(parts),
    onDutyRoutes(parts),
    organizationRoutes(parts),
    overviewRoutes(parts),
    passkeyRoutes(parts),
    passkeySignInRoutes(parts),
    passwordRoutes(parts),
    projectChannelRoutes(parts),
    projectKeyRoutes(parts),
    projectRoutes(parts),
    projectRuleRoutes(parts),
    providerRoutes(parts),
    proxyRoutes(parts),
    pushRoutes(parts),
    resetLinkRoutes(parts),
    resetRoutes(parts),
    ruleRoutes(parts),
    sampleProjectRoutes(parts),
    searchRoutes(parts),
    secondFactorRoutes(parts),
    codeSignInRoutes(parts),
    serverRoutes(parts),
    sessionRoutes(parts),
    silenceRoutes(parts),
    setupRoutes(parts),
    tokenRoutes(parts),
    userRoutes(parts),
    viewRoutes(parts),
    visitRoutes(parts),
    webhookRoutes(parts),
  ]
}

/** Lists the routes that providers and browsers on their way back call. They require no session. */
export function listOpenidFeatures(parts: Omit<OpenidParts, 'guard'>) {
  return [callbackRoutes(parts), logoutRoutes(parts)]
}

/** The dependencies of the features under /v1. */
interface V1Parts
  extends
    KeyGuardOptions,
    Pick<QuestionParts, 'egress'>,
    Pick<ReceiveParts, 'secrets' | 'sessions'> {
  appender: Appender
  quotas: Quotas
  identityWriter: IdentityWriter
  eraser: Eraser
  inflight: InFlightRequests
  searches: Pool
  lists: Pool
  answerWaits: AnswerWaits
  hints: Hints
}

/**
 * Lists the features under /v1, /ntfy and /mcp, which require an API key, and the addresses of
 * inbound hooks.
 */
export function listV1Features(gate: V1Parts) {
  const parts = { ...gate, guard: createKeyGuard(gate) }
  return [
    inRoutes(parts),
    currentKeyRoutes(parts),
    channelRoutes(parts),
    identityRoutes(parts),
    eventRoutes(parts),
    ntfyRoutes(parts),
    keySilenceRoutes(parts),
    keyAnswerRoutes(parts),
    mcpRoutes(parts),
  ]
}
