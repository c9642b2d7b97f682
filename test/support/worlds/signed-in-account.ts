import { createOrganization } from '../../../src/access/organizations/organizations.ts'
import { createProject } from '../../../src/access/organizations/projects.ts'
import type { Role } from '../../../src/access/guard/permissions.ts'
import { createSession, type NewSession } from '../../../src/access/guard/sessions.ts'
import { newId, toId } from '../../../src/base/ids.ts'
import { checkContract } from '../contracts.ts'
import type { Answered } from './project.ts'
import type { Booted } from '../servers/server.ts'

/** A signed-in account. */
export interface SignedInAccount {
  uuid: string
  /** The public id. */
  id: string
  email: string
  sessionId: string
  cookie: string
  /**
   * Requests `path` of /api like our own page; `json` is the body. Checks answers against their
   * contract.
   */
  request(path: string, options?: ApiRequest): Promise<Answered>
  get(path: string): Promise<Answered>
  post(path: string, json?: unknown): Promise<Answered>
  put(path: string, json: unknown): Promise<Answered>
  patch(path: string, json: unknown): Promise<Answered>
  delete(path: string): Promise<Answered>
}

export interface ApiRequest {
  method?: string
  json?: unknown
  body?: string
  headers?: Record<string, string>
}

/** Inserts an account with a session: sign-in has its own tests. */
export async function newSignedInAccount(
  { sql, url }: Pick<Booted, 'sql' | 'url'>,
  { isOperator = false }: { isOperator?: boolean } = {},
): Promise<SignedInAccount> {
  const { uuid, id } = newId('per')
  const email = `${id}@example.com`
  await sql`
    insert into accounts (id, name, email, is_operator) values (${uuid}, 'Test person', ${email}, ${isOperator})
  `
  return newSession({ sql, url }, { uuid, id, email })
}

/** Inserts one more session of an account. By default it began with a password alone. */
export async function newSession(
  { sql, url }: Pick<Booted, 'sql' | 'url'>,
  { uuid, id, email }: Pick<SignedInAccount, 'uuid' | 'id' | 'email'>,
  how: Partial<Pick<NewSession, 'method' | 'isMultiFactor'>> = {},
): Promise<SignedInAccount> {
  const session = await createSession(sql, {
    accountId: uuid,
    method: 'password',
    isInstalled: false,
    isMultiFactor: false,
    ...how,
    address: '127.0.0.1',
    userAgent: 'test',
  })
  const cookie = `tidings=${session.token}`
  return { uuid, id, email, sessionId: session.id, cookie, ...createApi(url, cookie) }
}

/** A new organization with one project. */
export interface TestOrganization {
  uuid: string
  id: string
  project: { uuid: string; id: string }
}

export async function newOrganization({ sql }: Pick<Booted, 'sql'>): Promise<TestOrganization> {
  const [uuid, project] = await sql.begin(async tx => {
    const organizationId = await createOrganization(tx, 'Test organization')
    return [organizationId, await createProject(tx, { organizationId, name: 'Test project' })]
  })
  return {
    uuid: uuid as string,
    id: toId('org', uuid as string),
    project: { uuid: project as string, id: toId('prj', project as string) },
  }
}

/** Returns a signed-in account with `role` in `organization`. */
export async function newMember(
  server: Pick<Booted, 'sql' | 'url'>,
  organization: Pick<TestOrganization, 'uuid'>,
  role: Role,
): Promise<SignedInAccount> {
  const account = await newSignedInAccount(server)
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${organization.uuid}, ${account.uuid}, ${role})
  `
  return account
}

/**
 * Returns functions that request /api with a cookie, like a page of the server. `own` are headers
 * in place of those that a page sends.
 */
export function createApi(url: string, cookie?: string, own?: Record<string, string>) {
  const page = {
    'sec-fetch-site': 'same-origin',
    origin: url,
    ...(cookie !== undefined && { cookie }),
  }
  const request = (path: string, options: ApiRequest = {}) => send(url, path, own ?? page, options)
  const withBody = (method: string) => (path: string, json?: unknown) =>
    request(path, { method, json })
  return {
    request,
    get: (path: string) => request(path),
    post: withBody('POST'),
    put: withBody('PUT'),
    patch: withBody('PATCH'),
    delete: (path: string) => request(path, { method: 'DELETE' }),
  }
}

async function send(
  url: string,
  path: string,
  sender: Record<string, string>,
  { method = 'GET', json, body, headers = {} }: ApiRequest,
): Promise<Answered> {
  const text = json === undefined ? body : JSON.stringify(json)
  const sent = {
    method,
    headers: {
      ...sender,
      ...(text !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(text !== undefined && { body: text }),
  }
  const response = await fetch(`${url}${path}`, { ...sent, redirect: 'manual' })
  const answer = await response.text()
  const parsed = parse(answer)
  checkContract(method, path, response.status, parsed)
  return { status: response.status, headers: response.headers, text: answer, body: parsed }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
