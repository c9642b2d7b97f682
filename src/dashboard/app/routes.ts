import type { accountRoutes } from '../../access/account/account-routes.ts'
import type { projectKeyRoutes } from '../../access/keys/key-routes.ts'
import type { connectionRoutes } from '../../access/openid/connection-routes.ts'
import type { providerRoutes } from '../../access/openid/provider-routes.ts'
import type { proxyRoutes } from '../../access/openid/proxy-routes.ts'
import type { ruleRoutes } from '../../access/openid/rule-routes.ts'
import type { visitRoutes } from '../../access/openid/visit-routes.ts'
import type { auditRoutes } from '../../access/organizations/audit-routes.ts'
import type { inviteRoutes } from '../../access/organizations/invite-routes.ts'
import type { memberRoutes } from '../../access/organizations/member-routes.ts'
import type { organizationRoutes } from '../../access/organizations/organization-routes.ts'
import type { projectRoutes } from '../../access/organizations/project-routes.ts'
import type { resetLinkRoutes } from '../../access/organizations/reset-link-routes.ts'
import type { passkeyRoutes } from '../../access/passkeys/routes.ts'
import type { passkeySignInRoutes } from '../../access/passkeys/sign-in-routes.ts'
import type { secondFactorRoutes } from '../../access/second-factor/routes.ts'
import type { codeSignInRoutes } from '../../access/second-factor/sign-in-routes.ts'
import type { passwordRoutes } from '../../access/sign-in/password-routes.ts'
import type { resetRoutes } from '../../access/sign-in/reset-routes.ts'
import type { sessionRoutes } from '../../access/sign-in/session-routes.ts'
import type { setupRoutes } from '../../access/sign-in/setup-routes.ts'
import type { tokenRoutes } from '../../access/tokens/token-routes.ts'
import type { acknowledgementRoutes } from '../../delivery/acknowledgements/acknowledgement-routes.ts'
import type { deliveryRoutes } from '../../delivery/outbox/delivery-routes.ts'
import type { notificationRoutes } from '../../delivery/push/notification-routes.ts'
import type { pushRoutes } from '../../delivery/push/push-routes.ts'
import type { onDutyRoutes } from '../../delivery/timers/on-duty-routes.ts'
import type { silenceRoutes } from '../../delivery/silences/routes.ts'
import type { attemptRoutes } from '../../delivery/webhooks/attempt-routes.ts'
import type { webhookRoutes } from '../../delivery/webhooks/webhook-routes.ts'
import type { projectChannelRoutes } from '../../log/channels/project-routes.ts'
import type { sampleProjectRoutes } from '../../log/demo/routes.ts'
import type { eventDeletionRoutes } from '../../log/events/deletion-routes.ts'
import type { searchRoutes } from '../../log/events/search-routes.ts'
import type { userRoutes } from '../../log/identities/user-routes.ts'
import type { insightRoutes } from '../../log/insights/routes.ts'
import type { overviewRoutes } from '../../log/overview/routes.ts'
import type { viewRoutes } from '../../log/views/routes.ts'
import type { OrganizationUsage, ServerInfo } from '../server-schema.ts'

type Tables = ReturnType<
  | typeof accountRoutes
  | typeof acknowledgementRoutes
  | typeof attemptRoutes
  | typeof auditRoutes
  | typeof codeSignInRoutes
  | typeof connectionRoutes
  | typeof deliveryRoutes
  | typeof eventDeletionRoutes
  | typeof insightRoutes
  | typeof inviteRoutes
  | typeof memberRoutes
  | typeof notificationRoutes
  | typeof onDutyRoutes
  | typeof organizationRoutes
  | typeof overviewRoutes
  | typeof passkeyRoutes
  | typeof passkeySignInRoutes
  | typeof passwordRoutes
  | typeof projectChannelRoutes
  | typeof projectKeyRoutes
  | typeof projectRoutes
  | typeof providerRoutes
  | typeof proxyRoutes
  | typeof pushRoutes
  | typeof resetLinkRoutes
  | typeof resetRoutes
  | typeof ruleRoutes
  | typeof sampleProjectRoutes
  | typeof searchRoutes
  | typeof secondFactorRoutes
  | typeof sessionRoutes
  | typeof setupRoutes
  | typeof silenceRoutes
  | typeof tokenRoutes
  | typeof userRoutes
  | typeof viewRoutes
  | typeof visitRoutes
  | typeof webhookRoutes
>['~Routes']

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The routes below a path, each with its name: `GET /api/me`. */
type RouteIn<Table, Path extends string = ''> = Table extends object
  ? {
      [Key in keyof Table & string]: Key extends Method
        ? { name: `${Uppercase<Key>} ${Path}`; route: Table[Key] }
        : RouteIn<Table[Key], `${Path}/${Key}`>
    }[keyof Table & string]
  : never

interface Reading<Answer> {
  params: unknown
  query: unknown
  body: unknown
  response: { 200: { success: true; data: Answer } }
}

/** The routes of /api with their types, from the tables of the server. */
type Routes = { [One in RouteIn<Tables> as One['name']]: One['route'] } & {
  'GET /api/server': Reading<ServerInfo>
  'GET /api/server/organizations': Reading<{ items: OrganizationUsage[] }>
}

/** The method and path of a route, as the server declares it. */
export type RouteName = keyof Routes

type Fields<Part> = unknown extends Part ? object : Part
type Optional<Part> = { [Key in keyof Part]: Part[Key] | undefined }

/** The path parameters, and the fields of the query or of the body. */
export type Input<Name extends RouteName> = Fields<Routes[Name]['params']> &
  Optional<Fields<Routes[Name]['query']>> &
  Fields<Routes[Name]['body']>

/** The arguments after the name. Routes without required fields need none. */
export type Args<Name extends RouteName> =
  object extends Input<Name> ? [input?: Input<Name>] : [input: Input<Name>]

/** The data of a successful response. */
export type Data<Name extends RouteName> = Routes[Name]['response'] extends infer Response
  ? Extract<Response[keyof Response], { success: true; data: unknown }>['data']
  : never

/** The routes that read a list page by page. */
export type ListName = {
  [Name in RouteName]: Data<Name> extends { items: unknown[]; nextCursor: string | null }
    ? Name
    : never
}[RouteName]
export type Item<Name extends ListName> = Data<Name>['items'][number]
