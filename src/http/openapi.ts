import { swagger } from '@elysiajs/swagger'
import { toComponents } from './json-schema.ts'
import { PATH_FAILURES } from './operation.ts'

/** The path of the API reference page that the plugin serves. */
export const SWAGGER_PATH = '/swagger'
/** Paths of the OpenAPI document of /v1. The plugin itself serves the first. */
export const V1_OPENAPI_PATHS = ['/swagger/json', '/openapi.json', '/api/openapi.json'] as const
/** The path of the OpenAPI document of /api. */
export const MANAGEMENT_OPENAPI_PATH = '/api/management.json'

const OPENAPI_DESCRIPTION = `Applications send events with one call, and identify the users that events are about. A 201 response means
that the event is stored durably, once, and in order.

Every request carries \`Authorization: Bearer <API_KEY>\`. A key belongs to one project. By default, it may make 100
requests in 60 seconds. The window begins with the key's first request.

Programs that publish to ntfy send to \`/ntfy/{topic}\`, as the documentation of ntfy describes.

Text lengths are counted in code points. Text must not contain U+0000 or half of a surrogate pair.

Every response except 401 has a \`requestId\`. Unknown paths get a 404 response, and unsupported methods a 405 response
with \`Allow\`, both before authentication. Failures have a \`code\`, which the schemas \`Failure\` and
\`ValidationFailure\` list.`

const MANAGEMENT_DESCRIPTION = `The API of the dashboard, for your own scripts.

Every request carries \`Authorization: Bearer <MANAGEMENT_TOKEN>\`. A token may make 300 requests in 60 seconds.

A few routes require a session instead. Sign in with \`POST /api/session\`, and send the cookie that it sets with every
request. Requests other than GET also carry \`Origin\` with the address of the server. In the OpenAPI document,
\`x-action\` names the permission that a request requires.

Every failure has a \`code\`, which the schemas \`ApiFailure\` and \`ValidationFailure\` list.`

const OPENAPI_TAGS = {
  Events: 'Things that happened. Each project has one log of events.',
  Identities: 'Your users, their properties and their aliases.',
  Channels: 'Named streams of events.',
  Keys: 'The API key of the request.',
}

const MANAGEMENT_TAGS = {
  Account: 'Signing in, and your own account.',
  Organizations: 'Organizations, their members, invites and audit logs.',
  Projects: 'Projects and their settings.',
  Tokens: 'Management tokens, with which programs call /api.',
  'API keys': 'Keys with which applications call /v1.',
  Channels: 'Channels and their settings.',
  Events: 'Searching and deleting events.',
  Insights: 'Cards that count the matches of searches.',
  Views: 'Saved searches, and what is new in them.',
  Users: 'Users that events are about.',
  Webhooks: 'Webhooks, and the attempts to deliver to them.',
  Notifications: 'Push notifications: devices, and settings per channel.',
  Server: 'The whole installation.',
}

/**
 * The configuration of Scalar: both documents, in our colours, without links to Scalar's own
 * services.
 */
const SCALAR = {
  // Without this, the plugin would set one URL for both sources.
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
  // Without this, the plugin would add its theme.
  customCss: '',
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
  /** `detail` is the whole OpenAPI operation. The guard of the route wrote it. */
  hooks: { detail?: unknown }
}

interface Options {
  /** Returns all routes of the server. Called only after all are mounted. */
  listRoutes(): readonly MountedRoute[]
  baseUrl: string
}

/**
 * The plugin `@elysiajs/swagger`: the document of /v1, and the API reference page with the script
 * at `scalarUrl`.
 */
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
      // A getter, because routes are mounted until the document is first requested.
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
    // The plugin declares the types of OpenAPI 3.0.
    documentation: documentation as unknown as NonNullable<
      Parameters<typeof swagger>[0]
    >['documentation'] &
      object,
  })
}

/** Returns the OpenAPI document of /api. */
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
        description: 'The session cookie. Over https its name is `__Host-tidings`.',
      },
      token: {
        type: 'http',
        scheme: 'bearer',
        description: 'A management token: `tdm_…`. Routes without it require a session.',
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

/** Returns the documented operations below `prefix`, by path and method. */
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

/** Adds path parameters of /api, which have no schema, and the failures that they can cause. */
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
