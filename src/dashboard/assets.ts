import type { OpenRoute } from '../http/open-route.ts'

export function assetRoutes(): OpenRoute[] {
  return []
}
