import type { OpenRoute } from '../http/open-route.ts'
import type { Site } from '../http/site.ts'
import { assetRoutes } from './assets.ts'
import { docsRoutes } from './docs/routes.ts'
import { shellRoutes } from './shell.ts'

/** Everything that is served to browsers: the application, the reference, and the files of both. */
export function dashboardRoutes(
  getDocument: () => Record<string, unknown>,
  getSite: () => Site,
): OpenRoute[] {
  return [...docsRoutes(getDocument, getSite), ...shellRoutes(getSite), ...assetRoutes()]
}
