import { hashPassword } from '../../../src/access/sign-in/credentials.ts'
import { newId } from '../../../src/base/ids.ts'
import { createApi, withMethods, type Api } from './signed-in-account.ts'
import type { Answered, RequestOptions } from './project.ts'
import type { Booted } from '../servers/server.ts'

export const PASSWORD = 'violet tractor seventeen'
export const WRONG_PASSWORD = 'violet tractor eighteen'

/** An account that can sign in with `PASSWORD`. */
export interface TestAccount {
  uuid: string
  id: string
  email: string
}

/** Hashes of `PASSWORD`, each made once. Verifying costs as much as making. */
const hashes: { cheap?: Promise<string>; costly?: Promise<string> } = {}
const CHEAP = { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 } as const

/** Returns a hash of `PASSWORD` that costs little to make and to verify. */
export function hashCheaply(): Promise<string> {
  return (hashes.cheap ??= Bun.password.hash(PASSWORD, CHEAP))
}

/** Adds an account. Its password is as expensive to verify as a real one only if `isCostly`. */
export async function newAccount(
  { sql }: Pick<Booted, 'sql'>,
  { isCostly = false }: { isCostly?: boolean } = {},
): Promise<TestAccount> {
  const { uuid, id } = newId('per')
  const email = `${id}@example.com`
  const hash = isCostly ? (hashes.costly ??= hashPassword(PASSWORD, 'test')) : hashCheaply()
  await sql`
    insert into accounts (id, name, email, password_hash)
    values (${uuid}, 'Test account', ${email}, ${await hash})
  `
  return { uuid, id, email }
}

/** A browser with an empty cookie jar, on a page of the server. */
export interface TestBrowser extends Api {
  cookies: Map<string, string>
  /** Signs in; `address` is the client address that a proxy reports. */
  signIn(email: string, password?: string, address?: string): Promise<Answered>
}

/** Keeps cookies by name, and ignores their attributes. */
export function createBrowser(url: string): TestBrowser {
  const api = createApi(url)
  const cookies = new Map<string, string>()
  async function request(path: string, options: RequestOptions = {}) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answered = await api.request(path, {
      ...options,
      headers: { ...(cookie && { cookie }), ...options.headers },
    })
    for (const line of answered.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    return answered
  }
  return {
    cookies,
    ...withMethods(request),
    signIn: (email, password = PASSWORD, address) =>
      request('/api/session', {
        method: 'POST',
        json: { email, password },
        headers: address === undefined ? {} : { 'x-forwarded-for': address },
      }),
  }
}

/** Adds an account, and signs it in from a new browser and network. */
export async function newSignedIn(server: Pick<Booted, 'sql' | 'url'>) {
  const account = await newAccount(server)
  const browser = createBrowser(server.url)
  const { status } = await browser.signIn(account.email, PASSWORD, newAddress())
  if (status !== 200) throw new Error(`The sign-in answered ${status}`)
  return { account, browser }
}

/** Returns an address that no other test uses. */
export function newAddress(): string {
  const [a, b, c] = crypto.getRandomValues(new Uint8Array(3))
  return `10.${a}.${b}.${c}`
}

/** Returns the audit actions by or about an account, oldest first. */
export async function listAccountAudit({ sql }: Pick<Booted, 'sql'>, { uuid, id }: TestAccount) {
  const rows = await sql<{ actor: string; action: string; target: string | null }[]>`
    select actor, action, target
    from audit_log
    where account_id = ${uuid} or target = ${id}
    order by at, id
  `
  return rows.map(({ actor, action }) => `${actor}: ${action}`)
}
