import { expect, test } from 'bun:test'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { listAuditEntries } from '../../support/audit.ts'
import type { Tx } from '../../../src/database/sql.ts'
import { hold, sendWhile } from '../../support/database-lock.ts'
import {
  createApi,
  newInvite,
  newMember,
  newSignedInAccount,
  newTeam,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { forFile } from '../../support/for-file.ts'
import { boot, withSharedServer } from '../../support/servers/server.ts'

const PASSWORD = 'seven green bicycles at dawn'

const server = withSharedServer()
/** Its failures count against no address of the other tests. */
const crowded = forFile(() => boot({ databaseUrl: server.databaseUrl }))

async function invited(role: string, email: string | null = null, at = server) {
  const [organization, owner] = await newTeam(at, 'owner')
  return { organization, owner, ...(await newInvite(owner, organization, { role, email })) }
}

async function listMembers({ uuid }: TestOrganization): Promise<string[]> {
  const rows = await server.sql<{ email: string; role: string }[]>`
    select p.email, m.role
    from memberships m
      join accounts p on p.id = m.account_id
    where m.organization_id = ${uuid} and m.role <> 'owner'
    order by p.email
  `
  return rows.map(({ email, role }) => `${email} ${role}`)
}

const stranger = () => createApi(server.url)
const newEmail = () => `${crypto.randomUUID()}@example.com`

test('dashboard §2 a signed-in account joins with the link, which is then used up', async () => {
  const { organization, token } = await invited('member')
  const account = await newSignedInAccount(server)
  // It joins beside who locks the organization, and then the account.
  const lock = await hold(
    server.sql,
    tx => tx`select from organizations where id = ${organization.uuid} for no key update`,
    tx => tx`select from accounts where id = ${account.uuid} for no key update`,
  )
  const joining = account.post('/api/invites/accept', { token })
  await lock.untilBlocked()
  await lock.release()
  const { status, body } = await joining
  expect([status, body.data]).toMatchObject([200, { role: 'member' }])
  const project = await account.get(`/api/projects/${organization.project.id}`)
  expect(project.body.data.role).toBe('member')
  const late = await newSignedInAccount(server)
  expectFailure(await late.post('/api/invites/accept', { token }), 404, 'not_found')
  expect(await listMembers(organization)).toEqual([`${account.email} member`])
  expect((await listAuditEntries(server.sql, organization.uuid)).at(-1)).toEqual({
    action: 'member.joined',
    target: account.id,
    accountId: account.uuid,
    details: { role: 'member' },
  })
})

test('dashboard §2 the link creates an account, which is signed in by its cookie', async () => {
  const { organization, token } = await invited('admin')
  const email = newEmail()
  const { status, headers, text } = await stranger().post('/api/invites/accept', {
    token,
    name: ' Grace ',
    email: email.toUpperCase(),
    password: PASSWORD,
  })
  expect(status).toBe(200)
  const [cookie = '', device] = headers.getSetCookie()
  expect(cookie).toMatch(/^tidings=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+$/)
  expect(device).toMatch(/^tidings-device=[\w-]{43}; /)
  expect(text).not.toContain(PASSWORD)
  const api = createApi(server.url, cookie.split(';')[0])
  const { body } = await api.get('/api/me')
  expect(body.data).toMatchObject({
    person: { name: 'Grace', email, isOperator: false },
    isVerified: true,
    credentials: { hasPassword: true, passkeys: 0, hasSecondFactor: false, recoveryCodes: 0 },
    organizations: [{ id: organization.id, role: 'admin' }],
  })
  const [session] = (await api.get('/api/sessions')).body.data.items
  expect(session).toMatchObject({ method: 'link', isMultiFactor: false })
  const [stored] = await server.sql`select password_hash from accounts where email = ${email}`
  expect(stored?.['password_hash']).toStartWith('$')
  expect(stored?.['password_hash']).not.toContain(PASSWORD)
  expectFailure(await stranger().post('/api/invites/look', { token }), 404, 'not_found')
})

test('reliability §6 with the e-mail of an existing account, sign-in comes first: nothing changes', async () => {
  const { organization, token } = await invited('owner')
  const victim = await newSignedInAccount(server)
  const [before] =
    await server.sql`select to_json(p)::text as row from accounts p where id = ${victim.uuid}`
  const answer = await stranger().post('/api/invites/accept', {
    token,
    name: 'Mallory',
    email: victim.email.toUpperCase(),
    password: PASSWORD,
  })
  expectFailure(answer, 409, 'conflict')
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect(answer.body.error).toContain('Sign in, then open the link again')
  const [after] =
    await server.sql`select to_json(p)::text as row from accounts p where id = ${victim.uuid}`
  expect(after).toEqual(before!)
  expect(await listMembers(organization)).toEqual([])
  expect((await stranger().post('/api/invites/look', { token })).status).toBe(200)
})

test('reliability §6 an invite with an e-mail is for that account alone', async () => {
  const email = newEmail()
  const { organization, token } = await invited('member', email)
  const other = await newSignedInAccount(server)
  expectFailure(await other.post('/api/invites/accept', { token }), 403, 'forbidden')
  const newcomer = { token, name: 'Eve', password: PASSWORD }
  const accept = (email: string) => stranger().post('/api/invites/accept', { ...newcomer, email })
  expectIssues(await accept(newEmail()), 'email invalid_value')
  expect(await listMembers(organization)).toEqual([])
  expect((await accept(email)).status).toBe(200)
  expect(await listMembers(organization)).toEqual([`${email} member`])
})

test('contract §1 a new account needs a name, an e-mail and a password that is hard to guess', async () => {
  const { token } = await invited('member')
  const email = newEmail()
  const accept = (fields: object) => stranger().post('/api/invites/accept', { token, ...fields })
  expectIssues(await accept({}), 'name required', 'email required', 'password required')
  expectIssues(await accept({ name: 'Ada', email }), 'password required')
  expectIssues(
    await accept({ name: 'Ada', email: 'ada', password: PASSWORD }),
    'email invalid_format',
  )
  const short = await accept({ name: 'Ada', email, password: 'short' })
  expect([short.status, short.body.details[0].path]).toEqual([400, ['password']])
  expect((await accept({ name: 'Ada', email, password: PASSWORD })).status).toBe(200)
})

test.each<[string, number, (tx: Tx, id: string) => PromiseLike<unknown>]>([
  [
    'for an address that the account leaves',
    403,
    (tx, id) => tx`update accounts set email = ${newEmail()} where id = ${id}`,
  ],
  // Without its session, the request lacks the fields of a new account.
  ['of a session that ends', 400, (tx, id) => tx`delete from sessions where account_id = ${id}`],
])('dashboard §2 an acceptance %s meanwhile is refused', async (_, status, change) => {
  const account = await newSignedInAccount(server)
  const { organization, token } = await invited('admin', account.email)
  const late = await sendWhile(
    server.sql,
    account.uuid,
    tx => change(tx, account.uuid),
    () => account.post('/api/invites/accept', { token }),
  )
  expect([401, status]).toContain(late.status)
  expect(await listMembers(organization)).toEqual([])
})

test('reliability §6 a member who accepts a higher role keeps the old role, and the invite stays open', async () => {
  const { organization, token } = await invited('admin')
  const viewer = await newMember(server, organization, 'viewer')
  expectFailure(await viewer.post('/api/invites/accept', { token }), 409, 'conflict')
  // Nor does an account create another one by mistake.
  const fields = { token, name: 'Ada', email: newEmail(), password: PASSWORD }
  const other = await newSignedInAccount(server)
  expectFailure(await other.post('/api/invites/accept', fields), 409, 'conflict')
  expect(await listMembers(organization)).toEqual([`${viewer.email} viewer`])
  expect((await stranger().post('/api/invites/look', { token })).status).toBe(200)
})

test('reliability §6 of 16 accounts and visitors that open one link at once, one joins', async () => {
  const { organization, token } = await invited('member', null, crowded)
  const accounts = await Promise.all(Array.from({ length: 8 }, () => newSignedInAccount(crowded)))
  const emails = Array.from({ length: 8 }, newEmail)
  const answers = await Promise.all([
    ...accounts.map(account => account.post('/api/invites/accept', { token })),
    ...emails.map(email =>
      createApi(crowded.url).post('/api/invites/accept', {
        token,
        name: 'Ada',
        email,
        password: PASSWORD,
      }),
    ),
  ])
  const joined = answers.filter(({ status }) => status === 200)
  expect(joined).toHaveLength(1)
  for (const { status } of answers) expect([200, 404, 429, 503]).toContain(status)
  expect(await listMembers(organization)).toHaveLength(1)
  const made = await server.sql`select from accounts where email in ${server.sql(emails)}`
  expect(made.length).toBeLessThanOrEqual(1)
})

test('reliability §6 of 20 accounts that accept during the withdrawal of an invite, none joins after it', async () => {
  const { organization, owner, id, token } = await invited('member', null, crowded)
  const accounts = await Promise.all(Array.from({ length: 20 }, () => newSignedInAccount(crowded)))
  const [withdrawn, ...answers] = await Promise.all([
    owner.delete(`/api/organizations/${organization.id}/invites/${id}`),
    ...accounts.map(account => account.post('/api/invites/accept', { token })),
  ])
  const joined = answers.filter(({ status }) => status === 200).length
  expect([withdrawn?.status, joined]).toEqual(joined ? [404, 1] : [200, 0])
})

test('contract §12 an organization has at most 1,000 members', async () => {
  const { organization, token } = await invited('member')
  await server.sql`
    with made as (
      insert into accounts (id, name, email)
      select gen_random_uuid(), 'p', gen_random_uuid() || '@example.com' from generate_series(1, 999)
      returning id
    )
    insert into memberships (organization_id, account_id, role)
    select ${organization.uuid}, id, 'viewer' from made
  `
  const account = await newSignedInAccount(server)
  const { status, body } = await account.post('/api/invites/accept', { token })
  expect([status, body.error]).toEqual([409, expect.stringContaining('at most 1000 members')])
})
