import { effect, signal } from '@preact/signals'
import type { Role } from '../../access/guard/permissions.ts'
import type { Account } from '../../access/sign-in/schema.ts'
import type { SessionStatus } from './live/socket.ts'
import { unsubscribe } from './push/unsubscribe.ts'
import {
  request,
  onFailure,
  setAccountId,
  toFailure,
  type Failure,
  type Result,
} from './request.ts'
import { storeTheme } from './theme.ts'
import { hasUnsaved } from './unsaved.ts'

export type Session =
  | { kind: 'unknown' }
  | { kind: 'failed'; failure: Failure }
  | { kind: 'signed_out' }
  | { kind: 'signed_in'; account: Account }

const ENDED = /^(signed_out|other_account)$/

export const session = signal<Session>({ kind: 'unknown' })

/** True if the server was set up in this page, so that the quick start comes next. */
export const hasJustSetUp = signal(false)

/** True if the session has ended, and the page stays for what the reader has not saved. */
export const hasEnded = signal(false)

onFailure(code => {
  if (code === 'second_factor_needed') void loadSession()
  if (!ENDED.test(code)) return
  if (session.value.kind === 'signed_in' && hasUnsaved()) hasEnded.value = true
  // The next page has the account that is signed in now.
  else if (code === 'other_account') location.reload()
  else session.value = { kind: 'signed_out' }
})

effect(() => {
  const { value } = session
  setAccountId(value.kind === 'signed_in' ? value.account.person.id : '')
})

document.addEventListener('visibilitychange', async () => {
  if (document.hidden || session.value.kind !== 'signed_in') return
  const before = session.value
  const result = await request('GET /api/me')
  // A page that may lose its project, and what the reader has not saved, waits.
  if (result.ok && session.value === before && !hasUnsaved()) setAccount(result.data)
})

/** Loads the signed-in account. */
export async function loadSession(): Promise<void> {
  const result = await request('GET /api/me')
  if (result.ok) setAccount(result.data)
  else if (result.failure.code !== 'signed_out') {
    session.value = { kind: 'failed', failure: result.failure }
  }
}

/** Starts a session with the account that the server returned. */
export function setAccount(account: Account): void {
  session.value = { kind: 'signed_in', account }
}

/** Checks whether the session is still valid. */
export async function checkSession(): Promise<SessionStatus> {
  const result = await request('GET /api/me')
  if (result.ok) return 'signed_in'
  return ENDED.test(result.failure.code) ? 'signed_out' : 'unreachable'
}

const NO_COOKIE =
  'The password is right, but this browser keeps no cookies of this site. Allow them and try again.'

/** Returns the result of a sign-in, or a failure if the browser has not kept its cookie. */
export async function checkCookie(result: Result<Account>): Promise<Result<Account>> {
  if (!result.ok || (await checkSession()) !== 'signed_out') return result
  return { ok: false, failure: toFailure({ code: 'no_cookie', message: NO_COOKIE }) }
}

export async function signOut(): Promise<Failure | undefined> {
  const result = await request('DELETE /api/session')
  if (!result.ok && result.failure.code !== 'signed_out') return result.failure
  clearSession()
  return undefined
}

/** Clears the session after the server has ended it. */
export function clearSession(): void {
  session.value = { kind: 'signed_out' }
  // Not every browser obeys the Clear-Site-Data header.
  void unsubscribe()
  // Clear-Site-Data also deletes the theme, which is not private.
  storeTheme()
}

/** Returns whether this is the installed app, whose sessions last longer. */
export function isInstalled(): boolean {
  const { standalone } = navigator as Navigator & { standalone?: boolean }
  return standalone === true || matchMedia('(display-mode: standalone)').matches
}

/** The project with this ID and its organization, if the account is a member. */
export function findProject(account: Account, id: string) {
  for (const organization of account.organizations) {
    const project = organization.projects.find(project => project.id === id)
    if (project) return { project, organization }
  }
  return undefined
}

/** Returns whether the account is a member of more than one project. */
export function hasSeveralProjects({ organizations }: Account): boolean {
  return organizations.flatMap(({ projects }) => projects).length > 1
}

/** The organization that requires a second factor, which the session does not have. */
export function findBarred(account: Account) {
  return account.organizations.find(({ needsSecondFactor }) => needsSecondFactor)
}

/** Returns whether the account has at least the role `needed`. The server enforces roles. */
export function isAllowed(account: Account, project: string, needed: Role): boolean {
  const role = findProject(account, project)?.organization.role
  return role !== undefined && isAtLeast(role, needed)
}

export function isAtLeast(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Ordered from the fewest permissions to the most. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const satisfies readonly Role[]
