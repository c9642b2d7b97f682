import { swagger } from '@elysiajs/swagger'
import { API_FAILURE_CODES, FAILURE_CODES } from '../errors.ts'
import { toComponents } from './json-schema.ts'
import { PATH_FAILURES } from './operation.ts'
import { ISSUE_CODES } from './rules.ts'

/** The page of the plugin. */
export const SWAGGER_PATH = '/swagger'
/** Where the document of /v1 is served, each time the same; the first is the plugin's own. */
export const V1_OPENAPI_PATHS = ['/swagger/json', '/openapi.json', '/api/openapi.json'] as const
/** Where the document of /api is served. */
export const MANAGEMENT_OPENAPI_PATH = '/api/management.json'

const OPENAPI_DESCRIPTION = `Applications post events with one call, and identify the users to whom they belong. An event answered
201 is stored durably, once, and in order.

Every request carries \`Authorization: Bearer <API_KEY>\`. A key belongs to one project and may make 100 requests in
60 seconds unless its limit says otherwise. The window begins with the key's first request.

Lengths of text count in code points. No text may contain U+0000 or half of a surrogate pair.

Every answer has a \`requestId\`, but for 401. A path that is not listed here is answered 404, a method that its path does
not have 405 with \`Allow\`, both before authentication and like the other failures: with a \`code\`, one of
${toList(FAILURE_CODES)}.
\`details[].code\` of a 400 is one of ${toList(ISSUE_CODES)}.`

const MANAGEMENT_DESCRIPTION = `Everything that the dashboard does, for your own scripts.

Sign in with \`POST /api/session\`, keep the cookie that it sets, and send the cookie with every request. A request other
than GET also carries \`Origin\` with the address of the server. In the OpenAPI document, \`x-action\` names the
permission that a request takes.

Every failure has a \`code\`, one of ${toList([...FAILURE_CODES, ...API_FAILURE_CODES])}.
\`details[].code\` of a 400 is one of ${toList(ISSUE_CODES)}.`

const OPENAPI_TAGS = {
  Events: 'What happened. Events are kept in one log per project.',
  Identities: 'Who your users are, and the other names that they go by.',
  Channels: 'The named streams that events are sent to.',
  Keys: 'What an API key opens.',
}

const MANAGEMENT_TAGS = {
  Account: 'Signing in, and the account of the member who does.',
  Organizations: 'Organizations, their members, invites and audit logs.',
  Projects: 'Projects, and how long they keep events.',
  'API keys': 'The keys with which applications send events.',
  Channels: 'Channels and their settings.',
  Events: 'Searching and deleting events.',
  Users: 'The users whom events are about.',
  Webhooks: 'Webhooks, and the attempts of their deliveries.',
  Notifications: 'Push notifications: devices, and what each member wants to hear of.',
  Server: 'The installation as a whole.',
}

/** Scalar's configuration: both documents, and nothing that leads to the services of its makers. */
const SCALAR = {
  // Else it would be the address of both sources.
  spec: { url: '' },
  sources: [
    { title: 'API', slug: 'api', url: V1_OPENAPI_PATHS[0], agent: { disabled: true } },
    {
      title: 'Management API',
      slug: 'management',
      url: MANAGEMENT_OPENAPI_PATH,
      agent: { disabled: true },
    },
  ],
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  mcp: { disabled: true },
  documentDownloadType: 'none',
}

interface MountedRoute {
  method: string
  path: string
  /** `detail` is the whole operation, which the guard of the route wrote. */
  hooks: { detail?: unknown }
}

interface Options {
  /** The routes of the whole server, once all are mounted. */
  listRoutes(): readonly MountedRoute[]
  baseUrl: string
}

/** `@elysiajs/swagger`: the document of /v1, and a page that shows it with the script at `scalarUrl`. */
export function openapiPlugin({ listRoutes, baseUrl, scalarUrl }: Options & { scalarUrl: string }) {
  const [specPath] = V1_OPENAPI_PATHS
  const { components, ...head } = toHead(baseUrl, {
    title: 'Tidings',
    description: OPENAPI_DESCRIPTION,
    tags: OPENAPI_TAGS,
    securitySchemes: {
      apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `tdg_…`.' },
    },
  })
  const documentation = {
    ...head,
    components: {
      ...components,
      // Asked for when the document is made: by then every route is mounted.
      get schemas() {
        return toComponents(listPaths(listRoutes(), '/v1/'))
      },
    },
  }
  return swagger({
    path: SWAGGER_PATH,
    specPath,
    scalarCDN: scalarUrl,
    scalarConfig: SCALAR as object,
    exclude: /^(?!\/v1\/)/,
    // The types of the plugin are those of OpenAPI 3.0.
    documentation: documentation as unknown as NonNullable<
      Parameters<typeof swagger>[0]
    >['documentation'] &
      object,
  })
}

/** The document of /api. */
export function toManagementDocument({ listRoutes, baseUrl }: Options): object {
  const paths = listPaths(listRoutes(), '/api/')
  const { components, ...head } = toHead(baseUrl, {
    title: 'Tidings management',
    description: MANAGEMENT_DESCRIPTION,
    tags: MANAGEMENT_TAGS,
    securitySchemes: {
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: 'tidings',
        description: 'The session. Over https the cookie is `__Host-tidings`.',
      },
    },
  })
  return { ...head, paths, components: { ...components, schemas: toComponents(paths) } }
}

interface Head {
  title: string
  description: string
  tags: Readonly<Record<string, string>>
  securitySchemes: Readonly<Record<string, object>>
}

function toHead(baseUrl: string, { title, description, tags, securitySchemes }: Head) {
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: '1.0.0',
      summary: 'Know the moment it happens.',
      description,
      license: { name: 'AGPL-3.0', identifier: 'AGPL-3.0-only' },
    },
    servers: [{ url: baseUrl }],
    security: Object.keys(securitySchemes).map(name => ({ [name]: [] })),
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    components: { securitySchemes },
  }
}

/** The documented operations below `prefix`, by path and method. */
function listPaths(routes: readonly MountedRoute[], prefix: string): Record<string, object> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { method, path, hooks } of routes) {
    if (!path.startsWith(prefix) || !isDocumented(hooks.detail)) continue
    const item = (paths[path.replace(/:(\w+)/g, '{$1}')] ??= {})
    item[method.toLowerCase()] = withPathParameters(path, hooks.detail as Operation)
  }
  return paths
}

interface Operation {
  parameters?: { in: string; name: string }[]
  responses?: object
}

/** Declares the parameters of a path of /api, which no schema describes, and the failures that come with them. */
function withPathParameters(path: string, operation: Operation): Operation {
  if (!path.includes(':') || !path.startsWith('/api/')) return operation
  const known = operation.parameters ?? []
  const names = [...path.matchAll(/:(\w+)/g)]
    .map(([, name = '']) => name)
    .filter(name => !known.some(one => one.in === 'path' && one.name === name))
  const parameters = names.map(name => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  return {
    ...operation,
    parameters: [...parameters, ...known],
    responses: { ...operation.responses, ...PATH_FAILURES },
  }
}

function isDocumented(detail: unknown): boolean {
  return detail !== undefined && (detail as { hide?: boolean }).hide !== true
}

function toList(codes: readonly string[]): string {
  return codes.map(code => `\`${code}\``).join(', ')
}
