import type { Static } from '@sinclair/typebox'
import type { SessionInfo } from '../../../access/guard/schema.ts'
import type { Account, EndedSessions } from '../../../access/sign-in/schema.ts'
import type {
  RecoveryCodes,
  TotpSecret as NewTotpSecret,
} from '../../../access/second-factor/schema.ts'
import type { Page } from '../../../http/envelope.ts'
import { request, type Result } from '../request.ts'

export type Session = Static<typeof SessionInfo>
export type TotpSecret = Static<typeof NewTotpSecret>

export function editAccount(change: { name?: string; email?: string }): Promise<Result<Account>> {
  return request('PATCH', '/api/me', change)
}

export function changePassword(change: {
  currentPassword?: string
  newPassword: string
}): Promise<Result<Static<typeof EndedSessions>>> {
  return request('PUT', '/api/me/password', change)
}

export function readSessions(cursor: string | undefined): Promise<Result<Page<Session>>> {
  const query = new URLSearchParams({ limit: '20', ...(cursor && { cursor }) })
  return request('GET', `/api/sessions?${query}`)
}

export function endSession(id: string): Promise<Result<unknown>> {
  return request('DELETE', `/api/sessions/${encodeURIComponent(id)}`)
}

export function endSessions(): Promise<Result<unknown>> {
  return request('DELETE', '/api/sessions')
}

export function removePassword(): Promise<Result<Account>> {
  return request('DELETE', '/api/me/password')
}

export function createSecondFactor(): Promise<Result<TotpSecret>> {
  return request('POST', '/api/second-factor')
}

export function confirmSecondFactor(code: string): Promise<Result<Account>> {
  return request('POST', '/api/second-factor/confirm', { code })
}

export function removeSecondFactor(): Promise<Result<Account>> {
  return request('DELETE', '/api/second-factor')
}

export function createRecoveryCodes(): Promise<Result<Static<typeof RecoveryCodes>>> {
  return request('POST', '/api/second-factor/recovery-codes')
}
