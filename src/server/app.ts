import type { AnyElysia } from 'elysia'
import { createApp, type App } from '../http/app.ts'
import { assetRoutes, assetUrl, FILE_POLICY, hasAsset } from '../dashboard/assets.ts'
import { swaggerRoutes } from '../dashboard/docs/swagger.ts'
import { docsRoutes } from '../dashboard/docs/routes.ts'
import { createNotFoundPage, shellRoutes } from '../dashboard/shell.ts'
import { publicRoutes } from '../http/public-route.ts'
import { openapiPlugin, V1_OPENAPI_PATHS, toManagementDocument } from '../http/openapi.ts'
import type { Site } from '../http/site.ts'
import { once } from '../base/functions.ts'

const SECURITY_TXT = '/.well-known/security.txt'
const DAY_MS = 86_400_000
/** RFC 9116 recommends less than a year. */
const VALID_DAYS = 180

interface Parts {
  site: Site
  /** URIs of contacts for security reports. */
  securityContacts: readonly string[]
  sourceUrl: string
  health: AnyElysia
  pings: AnyElysia
  openid: readonly AnyElysia[]
  api: readonly AnyElysia[]
  v1: readonly AnyElysia[]
}

/** Composes all features of the server into one function from request to response. */
export function createServerApp({ site, health, pings, openid, api, v1, ...parts }: Parts): App {
  const documented = { listRoutes: () => app.routes, baseUrl: site.url }
  const app: App = createApp({
    notFoundPage: createNotFoundPage(site),
    features: [
      health,
      pings,
      ...openid,
      securityTxtRoutes(site, parts.securityContacts),
      sourceRoutes(parts.sourceUrl),
      publicRoutes('dashboard', [
        ...docsRoutes({
          site,
          getOpenapi: once(() => readOpenapi(app, site)),
          getManagement: once(() => toManagementDocument(documented)),
        }),
        ...shellRoutes(site),
        ...assetRoutes(),
      ]),
      ...api,
      swaggerRoutes(
        site,
        openapiPlugin({
          ...documented,
          scalarUrl: hasAsset('scalar.js') ? assetUrl('scalar.js') : '',
        }),
      ),
      ...v1,
    ],
  })
  return app
}

/** Reads the OpenAPI document that `@elysiajs/swagger` generates. */
async function readOpenapi(app: App, site: Site): Promise<object> {
  const { origin, host } = new URL(site.url)
  const [path] = V1_OPENAPI_PATHS
  const response = await app.fetch(new Request(origin + path, { headers: { host } }))
  return response.json() as Promise<object>
}

/** Serves `/source`, which leads to the source code of this server, as AGPL-3.0 §13 requires. */
function sourceRoutes(url: string) {
  return publicRoutes('source', [
    {
      path: '/source',
      respond: () => new Response(null, { status: 302, headers: { Location: url } }),
    },
  ])
}

/** Serves `/.well-known/security.txt` (RFC 9116), or nothing when no contact is configured. */
function securityTxtRoutes(site: Site, contacts: readonly string[]) {
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'public, max-age=86400',
    'Content-Security-Policy': FILE_POLICY,
    'X-Content-Type-Options': 'nosniff',
  }
  const respond = () => new Response(toSecurityTxt(site, contacts, Date.now()), { headers })
  return publicRoutes('security-txt', contacts.length > 0 ? [{ path: SECURITY_TXT, respond }] : [])
}

/**
 * Returns the file as of `nowMs`, in milliseconds since 1970. `contacts` are URIs, with the
 * preferred one first.
 */
export function toSecurityTxt(site: Site, contacts: readonly string[], nowMs: number): string {
  const day = Math.floor(nowMs / DAY_MS) + VALID_DAYS
  const lines = [
    ...contacts.map(contact => `Contact: ${contact}`),
    `Expires: ${new Date(day * DAY_MS).toISOString()}`,
    // RFC 9116 requires https here.
    ...(site.isSecure ? [`Canonical: ${new URL(site.url).origin}${SECURITY_TXT}`] : []),
  ]
  return `${lines.join('\n')}\n`
}
