import type { AnyElysia } from 'elysia'
import { createApp, type App } from '../http/app.ts'
import { assetUrl, hasAsset } from '../dashboard/assets.ts'
import { swaggerRoutes } from '../dashboard/docs/swagger.ts'
import { dashboardRoutes } from '../dashboard/routes.ts'
import { createNotFoundPage } from '../dashboard/shell.ts'
import { securityTxtRoutes } from './security-txt.ts'
import { sourceRoutes } from './source.ts'
import { openapiPlugin, V1_OPENAPI_PATHS, toManagementDocument } from '../http/openapi.ts'
import type { Site } from '../http/site.ts'
import { once } from '../base/functions.ts'

interface Parts {
  site: Site
  /** URIs of contacts for security reports. */
  securityContacts: readonly string[]
  sourceUrl: string
  health: AnyElysia
  openid: readonly AnyElysia[]
  api: readonly AnyElysia[]
  v1: readonly AnyElysia[]
}

/** Composes all features of the server into one function from request to response. */
export function createServerApp({ site, health, openid, api, v1, ...parts }: Parts): App {
  const documented = { listRoutes: () => app.routes, baseUrl: site.url }
  const app: App = createApp({
    notFoundPage: createNotFoundPage(site),
    features: [
      health,
      ...openid,
      securityTxtRoutes({ site, contacts: parts.securityContacts }),
      sourceRoutes(parts.sourceUrl),
      dashboardRoutes({
        site,
        getOpenapi: once(() => readOpenapi(app, site)),
        getManagement: once(() => toManagementDocument(documented)),
      }),
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
