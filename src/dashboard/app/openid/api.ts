import { request } from '../request.ts'
import type { Input } from '../routes.ts'
import { isInstalled } from '../session.ts'

const ROUTE = 'POST /api/openid/:provider/visits'
export type VisitOptions = Omit<Input<typeof ROUTE>, 'isInstalled'>

/** Opens the page of a provider. Returns only if the visit cannot start. */
export async function startVisit(visit: VisitOptions) {
  const started = await request(ROUTE, { ...visit, isInstalled: isInstalled() })
  // Forms on the page of the account are of other things.
  const leave = visit.purpose === 'connect' ? (url: string) => location.assign(url) : leaveForm
  if (started.ok) leave(started.data.url)
  return started
}

/** Opens a page in place of a form, whose text the browser would ask about. */
export function leaveForm(url: string) {
  document.querySelector('[data-changed]')?.removeAttribute('data-changed')
  location.assign(url)
}
