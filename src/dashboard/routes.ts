import { publicRoutes } from '../http/public-route.ts'
import type { Site } from '../http/site.ts'
import { assetRoutes } from './assets.ts'
import { docsRoutes, type DocsOptions } from './docs/routes.ts'
import { shellRoutes } from './shell.ts'

/** Routes for the application, the documentation and their files. */
export function dashboardRoutes(options: DocsOptions & { site: Site }) {
  return publicRoutes('dashboard', [
    ...docsRoutes(options),
    ...shellRoutes(options.site),
    ...assetRoutes(),
  ])
}
