import type { OrganizationUsage, ServerInfo } from '../server-schema.ts'

/** The tables of the server. */
type Tables = ReturnType<
  | typeof import('../../access/account/account-routes.ts').accountRoutes
  | typeof import('../../access/keys/key-routes.ts').projectKeyRoutes
  | typeof import('../../access/openid/connection-routes.ts').connectionRoutes
  | typeof import('../../access/openid/provider-routes.ts').providerRoutes
  | typeof import('../../access/openid/proxy-routes.ts').proxyRoutes
  | typeof import('../../access/openid/rule-routes.ts').ruleRoutes
  | typeof import('../../access/openid/visit-routes.ts').visitRoutes
  | typeof import('../../access/organizations/audit-routes.ts').auditRoutes
  | typeof import('../../access/organizations/invite-routes.ts').inviteRoutes
  | typeof import('../../access/organizations/member-routes.ts').memberRoutes
  | typeof import('../../access/organizations/organization-routes.ts').organizationRoutes
  | typeof import('../../access/organizations/project-routes.ts').projectRoutes
  | typeof import('../../access/organizations/reset-link-routes.ts').resetLinkRoutes
  | typeof import('../../access/passkeys/routes.ts').passkeyRoutes
  | typeof import('../../access/passkeys/sign-in-routes.ts').passkeySignInRoutes
  | typeof import('../../access/second-factor/routes.ts').secondFactorRoutes
  | typeof import('../../access/second-factor/sign-in-routes.ts').codeSignInRoutes
  | typeof import('../../access/sign-in/password-routes.ts').passwordRoutes
  | typeof import('../../access/sign-in/reset-routes.ts').resetRoutes
  | typeof import('../../access/sign-in/session-routes.ts').sessionRoutes
  | typeof import('../../access/sign-in/setup-routes.ts').setupRoutes
  | typeof import('../../access/tokens/token-routes.ts').tokenRoutes
  | typeof import('../../delivery/acknowledgements/acknowledgement-routes.ts').acknowledgementRoutes
  | typeof import('../../delivery/heartbeats/routes.ts').heartbeatRoutes
  | typeof import('../../delivery/outbox/delivery-routes.ts').deliveryRoutes
  | typeof import('../../delivery/push/notification-routes.ts').notificationRoutes
  | typeof import('../../delivery/push/push-routes.ts').pushRoutes
  | typeof import('../../delivery/questions/routes.ts').answerRoutes
  | typeof import('../../delivery/timers/on-duty-routes.ts').onDutyRoutes
  | typeof import('../../delivery/rules/routes.ts').projectRuleRoutes
  | typeof import('../../delivery/silences/routes.ts').silenceRoutes
  | typeof import('../../delivery/webhooks/attempt-routes.ts').attemptRoutes
  | typeof import('../../delivery/webhooks/webhook-routes.ts').webhookRoutes
  | typeof import('../../log/channels/project-routes.ts').projectChannelRoutes
  | typeof import('../../log/demo/routes.ts').sampleProjectRoutes
  | typeof import('../../log/events/deletion-routes.ts').eventDeletionRoutes
  | typeof import('../../log/events/search-routes.ts').searchRoutes
  | typeof import('../../log/hooks/hook-routes.ts').hookRoutes
  | typeof import('../../log/identities/user-routes.ts').userRoutes
  | typeof import('../../log/insights/routes.ts').insightRoutes
  | typeof import('../../log/overview/routes.ts').overviewRoutes
  | typeof import('../../log/views/routes.ts').viewRoutes
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
