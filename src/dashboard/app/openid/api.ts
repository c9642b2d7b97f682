import { request } from '../request.ts'
import type { Input } from '../routes.ts'
import { isInstalled } from '../session.ts'

const ROUTE = 'POST /api/openid/:provider/visits'
export type VisitOptions = Omit<Input<typeof ROUTE>, 'isInstalled'>

/** Opens the page of a provider. Returns only if the visit cannot start. */
export async function startVisit(visit: VisitOptions) {
  const started = await request(ROUTE, { ...visit, isInstalled: isInstalled() })
  if (started.ok) location.assign(started.data.url)
  return started
}
