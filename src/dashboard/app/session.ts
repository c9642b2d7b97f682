import { signal } from '@preact/signals'
import type { Role } from '../../accounts/permissions.ts'
import type { Account } from '../../accounts/schema.ts'
import type { SessionStatus } from './live/connection.ts'
import { unsubscribe } from './push/unsubscribe.ts'
import { request, onSessionEnd, type Failure } from './request.ts'
import { chooseTheme, theme } from './theme.ts'

export type Session =
  | { kind: 'unknown' }
  | { kind: 'failed'; failure: Failure }
  | { kind: 'signed_out' }
  | { kind: 'signed_in'; account: Account }

export const session = signal<Session>({ kind: 'unknown' })

/** Whether the server was set up in this page: then the next thing is a first event. */
export const hasJustSetUp = signal(false)

onSessionEnd(() => {
  session.value = { kind: 'signed_out' }
})

/** Asks the server who is signed in. */
export async function loadSession(): Promise<void> {
  const result = await request<Account>('GET', '/api/me')
  if (result.ok) setAccount(result.data)
  else if (result.failure.code !== 'signed_out') {
    session.value = { kind: 'failed', failure: result.failure }
  }
}

/** Takes the account that the server answers to whoever has just signed in. */
export function setAccount(account: Account): void {
  session.value = { kind: 'signed_in', account }
}

/** Whether the session still stands; what is on the screen stays. */
export async function checkSession(): Promise<SessionStatus> {
  const result = await request<Account>('GET', '/api/me')
  if (result.ok) return 'signed_in'
  return result.failure.code === 'signed_out' ? 'signed_out' : 'unreachable'
}

export async function signOut(): Promise<Failure | undefined> {
  const result = await request('DELETE', '/api/session')
  if (!result.ok && result.failure.code !== 'signed_out') return result.failure
  clearSession()
  return undefined
}

/** Goes on without the session, which the server has ended. */
export function clearSession(): void {
  session.value = { kind: 'signed_out' }
  // Not every browser forgets what the server tells it to.
  void unsubscribe()
  // The server has the browser forget all that it keeps of us; how it looks is nobody's secret.
  chooseTheme(theme.value)
}

/** Whether this is the installed app: its sessions last longer. */
export function isInstalled(): boolean {
  const { standalone } = navigator as Navigator & { standalone?: boolean }
  return standalone === true || matchMedia('(display-mode: standalone)').matches
}

/** The project and organization of `id`, if the person is among its people. */
export function findProject(account: Account, id: string) {
  for (const organization of account.organizations) {
    const project = organization.projects.find(project => project.id === id)
    if (project) return { project, organization }
  }
  return undefined
}

/** Whether the person's role in the organization of a project is `needed` or more; the server has the last word. */
export function isAllowed(account: Account, project: string, needed: 'member' | 'admin'): boolean {
  const role = findProject(account, project)?.organization.role
  return role !== undefined && isAtLeast(role, needed)
}

export function isAtLeast(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** From the least to the most. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const satisfies readonly Role[]
