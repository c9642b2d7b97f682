import { createOrganization } from '../../../src/access/organizations/organizations.ts'
import { createProject } from '../../../src/access/organizations/projects.ts'
import type { Role } from '../../../src/access/guard/permissions.ts'
import { createSession, type NewSession } from '../../../src/access/guard/sessions.ts'
import { newId, toId } from '../../../src/base/ids.ts'
import { checkContract } from '../contracts.ts'
import { JSON_TYPE, sendRequest, type Answered, type RequestOptions } from './project.ts'
import type { Booted } from '../servers/server.ts'

type Request = (path: string, options?: RequestOptions) => Promise<Answered>

/** Requests of /api, like those of our own page. */
export interface Api {
  /** `json` is the body. Checks answers against their contract. */
  request: Request
  get(path: string): Promise<Answered>
  post(path: string, json?: unknown): Promise<Answered>
  put(path: string, json: unknown): Promise<Answered>
  patch(path: string, json: unknown): Promise<Answered>
  delete(path: string): Promise<Answered>
}

/** A signed-in account. */
export interface SignedInAccount extends Api {
  uuid: string
  /** The public id. */
  id: string
  email: string
  sessionId: string
  cookie: string
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
  await addMember(server, organization, account, role)
  return account
}

/** Makes an account a member. */
export async function addMember(
  { sql }: Pick<Booted, 'sql'>,
  organization: Pick<TestOrganization, 'uuid'>,
  account: Pick<SignedInAccount, 'uuid'>,
  role: Role,
): Promise<void> {
  await sql`
    insert into memberships (organization_id, account_id, role)
    values (${organization.uuid}, ${account.uuid}, ${role})
  `
}

/** Returns a new organization, and a member of it for each role. */
export async function newTeam<const Roles extends readonly Role[]>(
  server: Pick<Booted, 'sql' | 'url'>,
  ...roles: Roles
): Promise<[TestOrganization, ...{ [Nth in keyof Roles]: SignedInAccount }]> {
  const organization = await newOrganization(server)
  const members: SignedInAccount[] = []
  for (const role of roles) members.push(await newMember(server, organization, role))
  return [organization, ...members] as never
}

/** Invites somebody. Returns the id of the invite, and the token of its link. */
export async function newInvite(
  maker: Pick<SignedInAccount, 'post'>,
  { id }: Pick<TestOrganization, 'id'>,
  body: { role: string; email?: string | null },
): Promise<{ id: string; token: string }> {
  const { status, text, body: made } = await maker.post(`/api/organizations/${id}/invites`, body)
  if (status !== 201) throw new Error(`${status} ${text}`)
  return { id: made.data.id, token: made.data.url.split('#')[1] }
}

/** Returns functions that request /api like a page, with a cookie and `own` headers. */
export function createApi(url: string, cookie?: string, own?: Record<string, string>): Api {
  const page = {
    'sec-fetch-site': 'same-origin',
    origin: url,
    ...(cookie !== undefined && { cookie }),
  }
  const request = async (path: string, options: RequestOptions = {}) => {
    const sender = { ...(options.body !== undefined && JSON_TYPE), ...(own ?? page) }
    const answered = await sendRequest(url + path, sender, options)
    checkContract(options.method ?? 'GET', path, answered.status, answered.body)
    return answered
  }
  return withMethods(request)
}

/** Adds a function for each method. */
export function withMethods(request: Request): Api {
  const withBody = (method: string) => (path: string, json?: unknown) =>
    request(path, { method, json })
  return {
    request,
    get: path => request(path),
    post: withBody('POST'),
    put: withBody('PUT'),
    patch: withBody('PATCH'),
    delete: path => request(path, { method: 'DELETE' }),
  }
}
