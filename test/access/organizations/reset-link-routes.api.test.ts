import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { expectFailure } from '../../support/answers.ts'
import { listAuditActions } from '../../support/audit.ts'
import {
  createApi,
  addMember,
  newInvite,
  newMember,
  newOrganization,
  newSignedInAccount,
  newTeam,
  type SignedInAccount,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import type { Tx } from '../../../src/database/sql.ts'
import { hold } from '../../support/database-lock.ts'

const server = withSharedServer()

async function countLinks({ uuid }: SignedInAccount): Promise<number> {
  return (await server.sql`select from reset_links where account_id = ${uuid}`).length
}

test('reliability §6 an owner creates a reset link for a member; its token is kept as a hash alone', async () => {
  const [organization, owner, member] = await newTeam(server, 'owner', 'admin')
  const path = `/api/organizations/${organization.id}/members/${member.id}/reset-link`
  const { status, body } = await owner.post(path)
  expect(status).toBe(201)
  expect(body.data.url).toMatch(
    new RegExp(`^http://localhost:${server.server.port}/reset#[\\w-]{43}$`),
  )
  expect(Date.parse(body.data.expiresAt)).toBeGreaterThan(Date.now())
  expect(await countLinks(member)).toBe(1)
  const token = body.data.url.split('#')[1]
  const tables = await server.sql`
    select (select json_agg(r)::text from reset_links r) || (select json_agg(a)::text from audit_log a) as text
  `
  expect(tables[0]?.['text']).not.toContain(token)
  expect(await listAuditActions(server.sql, organization.uuid)).toContain('member.resetLinkCreated')
})

test('reliability §6 a reset link takes an owner of every organization of the member', async () => {
  const organization = await newOrganization(server)
  const elsewhere = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const member = await newMember(server, organization, 'viewer')
  await addMember(server, elsewhere, member, 'viewer')
  const path = `/api/organizations/${organization.id}/members/${member.id}/reset-link`
  const refused = await owner.post(path)
  expectFailure(refused, 403, 'forbidden')
  expect(refused.body.error).toContain('tidings owner reset')
  await addMember(server, elsewhere, owner, 'admin')
  expectFailure(await owner.post(path), 403, 'forbidden')
  expect(await countLinks(member)).toBe(0)
  await server.sql`
    update memberships set role = 'owner'
    where organization_id = ${elsewhere.uuid} and account_id = ${owner.uuid}
  `
  expect((await owner.post(path)).status).toBe(201)
})

test('reliability §6 only operators create reset links for operators', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  const operator = await newSignedInAccount(server, { isOperator: true })
  const another = await newSignedInAccount(server, { isOperator: true })
  await addMember(server, organization, operator, 'viewer')
  await addMember(server, organization, another, 'owner')
  const path = `/api/organizations/${organization.id}/members/${operator.id}/reset-link`
  expectFailure(await owner.post(path), 403, 'forbidden')
  expect(await countLinks(operator)).toBe(0)
  expect((await another.post(path)).status).toBe(201)
})

test('reliability §6 members create no reset link for themselves: a session does not replace the password', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  const path = `/api/organizations/${organization.id}/members/${owner.id}/reset-link`
  expectFailure(await owner.post(path), 409, 'conflict')
  expect(await countLinks(owner)).toBe(0)
})

/** Returns a reset link for a member of another owner's organization, too. */
async function newLink() {
  const [organization, owner, otherOwner, member] = await newTeam(
    server,
    'owner',
    'owner',
    'member',
  )
  const path = `/api/organizations/${organization.id}/members/${member.id}/reset-link`
  const made = await owner.post(path)
  expect(made.status).toBe(201)
  return { organization, owner, otherOwner, member, token: made.body.data.url.split('#')[1] }
}

const use = (token: string) =>
  createApi(server.url).post('/api/reset', { token, password: 'gravel monsoon nineteen' })

async function countResetActions({ uuid }: TestOrganization): Promise<Record<string, number>> {
  const actions = await listAuditActions(server.sql, uuid)
  const ofLinks = actions.filter(action => action.startsWith('member.resetLink'))
  return Object.fromEntries(
    ofLinks.map(action => [action, ofLinks.filter(other => other === action).length]),
  )
}

type Made = Awaited<ReturnType<typeof newLink>>

describe('reliability §6 a reset link is dead once its maker lost the right to create it:', () => {
  // Changes the database directly, so that no code withdraws the link: using it checks the right
  // again.
  test.each([
    ['the member has left', 'member', 'delete from memberships where account_id = $1'],
    ['the maker was removed', 'owner', 'delete from memberships where account_id = $1'],
    [
      'the maker has lost the role',
      'owner',
      `update memberships set role = 'admin' where account_id = $1`,
    ],
    ['the maker is deleted', 'owner', 'delete from accounts where id = $1'],
    [
      'the organization is deleted',
      'organization',
      'update organizations set deleted_at = now() where id = $1',
    ],
    [
      'the member has become an operator',
      'member',
      'update accounts set is_operator = true where id = $1',
    ],
  ] as const)('%s', async (_, who, change) => {
    const made = await newLink()
    await server.sql.unsafe(change, [made[who].uuid])
    expectFailure(await use(made.token), 404, 'not_found')
    const [row] =
      await server.sql`select password_hash from accounts where id = ${made.member.uuid}`
    expect(row?.['password_hash']).toBeNull()
  })

  test('the member is joining another organization at the same moment', async () => {
    const { member, token } = await newLink()
    const elsewhere = await newOrganization(server)
    const joining = (tx: Tx) => tx`
      insert into memberships (organization_id, account_id, role)
      values (${elsewhere.uuid}, ${member.uuid}, 'viewer')
    `
    await using lock = await hold(server.sql, joining)
    const used = use(token)
    await lock.untilBlocked()
    await lock.release()
    expectFailure(await used, 404, 'not_found')
  })
})

describe('reliability §6 a reset link is withdrawn, with an audit entry, when', () => {
  async function expectWithdrawn(made: Made): Promise<void> {
    const left = await server.sql`
      select from reset_links where hash = sha256(${made.token}::text::bytea)
    `
    expect(left).toHaveLength(0)
    const counts = await countResetActions(made.organization)
    expect(counts).toMatchObject({ 'member.resetLinkWithdrawn': 1 })
    expectFailure(await use(made.token), 404, 'not_found')
  }

  const json = { role: 'admin' }
  test.each([
    ['the member gets another role', 'otherOwner', 'PATCH', '/members/:member', json],
    ['the member is removed', 'otherOwner', 'DELETE', '/members/:member', undefined],
    ['the member leaves', 'member', 'DELETE', '/membership', undefined],
    ['the maker gets another role', 'otherOwner', 'PATCH', '/members/:owner', json],
    ['the maker is removed', 'otherOwner', 'DELETE', '/members/:owner', undefined],
    ['the maker leaves', 'owner', 'DELETE', '/membership', undefined],
    ['the organization is deleted', 'otherOwner', 'DELETE', '', undefined],
    ['another owner makes one', 'otherOwner', 'POST', '/members/:member/reset-link', undefined],
  ] as const)('%s', async (_, who, method, to, json) => {
    const made = await newLink()
    const path = to.replace(/:(\w+)/, (_, name: 'member' | 'owner') => made[name].id)
    const place = `/api/organizations/${made.organization.id}`
    const { status } = await made[who].request(place + path, { method, json })
    expect([200, 201]).toContain(status)
    await expectWithdrawn(made)
  })

  test('the member joins another organization', async () => {
    const made = await newLink()
    const [elsewhere, admin] = await newTeam(server, 'admin')
    const { token } = await newInvite(admin, elsewhere, { role: 'viewer' })
    expect((await made.member.post('/api/invites/accept', { token })).status).toBe(200)
    await expectWithdrawn(made)
  })

  test('an operator creates an organization that the maker does not own', async () => {
    const organization = await newOrganization(server)
    const maker = await newSignedInAccount(server, { isOperator: true })
    const operator = await newSignedInAccount(server, { isOperator: true })
    await addMember(server, organization, maker, 'owner')
    await addMember(server, organization, operator, 'viewer')
    const path = `/api/organizations/${organization.id}/members/${operator.id}/reset-link`
    expect((await maker.post(path)).status).toBe(201)
    expect((await operator.post('/api/organizations', { name: 'Founded' })).status).toBe(201)
    expect(await countLinks(operator)).toBe(0)
  })
})

test('reliability §6 a reset link stays valid while the right of its maker is unchanged', async () => {
  const { organization, owner, otherOwner, member, token } = await newLink()
  await addMember(server, await newOrganization(server), owner, 'viewer')
  const path = `/api/organizations/${organization.id}/members/${otherOwner.id}`
  expect((await owner.patch(path, { role: 'admin' })).status).toBe(200)
  expect((await use(token)).status).toBe(200)
  expect(await countResetActions(organization)).toEqual({
    'member.resetLinkCreated': 1,
    'member.resetLinkUsed': 1,
  })
  const [row] = await server.sql`
    select count(*)::int as n from audit_log where target = ${member.id} and action = 'password.reset'
  `
  expect(row?.['n']).toBe(1)
})

describe('reliability §6 the list of open reset links', () => {
  const listPath = ({ id }: { id: string }) => `/api/organizations/${id}/reset-links`

  test('shows who created each link, for whom, and when it expires; never its secret', async () => {
    const { organization, owner, otherOwner, member, token } = await newLink()
    const other = await newMember(server, organization, 'viewer')
    await owner.post(`/api/organizations/${organization.id}/members/${other.id}/reset-link`)
    const first = await otherOwner.get(`${listPath(organization)}?limit=1`)
    const { items, nextCursor: cursor } = first.body.data
    const second = await otherOwner.get(`${listPath(organization)}?limit=1&cursor=${cursor}`)
    // The newest is first.
    expect([...items, ...second.body.data.items]).toEqual(
      [other, member].map(({ id }) => ({
        id: expect.stringMatching(/^rst_/),
        person: expect.objectContaining({ id }),
        createdBy: 'Test person',
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
      })),
    )
    expect(second.body.data.nextCursor).toBeNull()
    const hash = createHash('sha256').update(token).digest('hex')
    for (const secret of [token, hash]) expect(second.text).not.toContain(secret)
    await server.sql`update reset_links set expires_at = now()`
    expect((await owner.get(listPath(organization))).body.data.items).toEqual([])
  })

  test('has links of the command line for members whose password the caller may reset', async () => {
    const [organization, owner, member] = await newTeam(server, 'owner', 'viewer')
    await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, member.uuid))
    const list = async () => (await owner.get(listPath(organization))).body.data.items
    expect(await list()).toMatchObject([{ person: { id: member.id }, createdBy: null }])
    const [{ id }] = await list()
    const elsewhere = await newOrganization(server)
    await addMember(server, elsewhere, member, 'viewer')
    expect(await list()).toEqual([])
    expectFailure(await owner.delete(`${listPath(organization)}/${id}`), 404, 'not_found')
    await server.sql`delete from memberships where organization_id = ${elsewhere.uuid}`
    expect((await owner.delete(`${listPath(organization)}/${id}`)).status).toBe(200)
    expect(await countResetActions(organization)).toEqual({ 'member.resetLinkWithdrawn': 1 })
  })

  test('an owner withdraws a link, with one audit entry; the link stops working', async () => {
    const { organization, otherOwner, member, token } = await newLink()
    const path = listPath(organization)
    const [{ id }] = (await otherOwner.get(path)).body.data.items
    expect((await otherOwner.delete(`${path}/${id}`)).body.data).toEqual({ id })
    expectFailure(await otherOwner.delete(`${path}/${id}`), 404, 'not_found')
    expectFailure(await use(token), 404, 'not_found')
    expect(await countResetActions(organization)).toEqual({
      'member.resetLinkCreated': 1,
      'member.resetLinkWithdrawn': 1,
    })
    const entries = await server.sql`
      select account_id from audit_log where action = 'reset.withdrawn' and target = ${member.id}
    `
    expect(entries.map(row => row['account_id'])).toEqual([otherOwner.uuid])
  })
})
