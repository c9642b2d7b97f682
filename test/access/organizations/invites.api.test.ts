import { describe, expect, test } from 'bun:test'
import { ageInvite, ageVerification } from '../../support/worlds/ageing.ts'
import { newSecret } from '../../../src/access/guard/secret.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { listAuditEntries } from '../../support/audit.ts'
import {
  createApi,
  newInvite,
  newMember,
  newSignedInAccount,
  newTeam,
} from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'

// Invalid tokens are counted by address, so each request comes from another one.
const server = withServer({ trustedProxies: ['127.0.0.1/32'] })

let askers = 0
async function look(token: unknown) {
  const headers = { 'x-forwarded-for': `198.51.100.${askers++ % 250}` }
  return createApi(server.url).request('/api/invites/look', {
    method: 'POST',
    json: { token },
    headers,
  })
}

test('reliability §6 an invite is a link of 256 bits, valid for 7 days and stored only as a hash', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const { status, body } = await admin.post(`/api/organizations/${organization.id}/invites`, {
    role: 'member',
    email: ' Ada@Example.com',
  })
  expect(status).toBe(201)
  expect(body.data).toMatchObject({ role: 'member', email: 'ada@example.com' })
  expect(body.data.url).toMatch(/^http:\/\/localhost:\d+\/invite#[\w-]{43}$/)
  const days = (Date.parse(body.data.expiresAt) - Date.now()) / 86_400_000
  expect(days).toBeWithin(6.99, 7.01)
  const token = body.data.url.split('#')[1]
  const [stored] = await server.sql`
    select (select json_agg(i)::text from invites i) || (select json_agg(a)::text from audit_log a) as text
  `
  expect(stored?.['text']).not.toContain(token)
  expect(await listAuditEntries(server.sql, organization.uuid)).toMatchObject([
    { action: 'invite.created', accountId: admin.uuid, details: { isBound: true } },
  ])
  expect((await look(token)).body.data).toEqual({
    organization: { name: 'Test organization' },
    role: 'member',
    invitedBy: { name: 'Test person' },
    email: 'ada@example.com',
    expiresAt: body.data.expiresAt,
  })
})

test('reliability §6 members cannot invite above their own role', async () => {
  const [organization, admin, owner] = await newTeam(server, 'admin', 'owner')
  const path = `/api/organizations/${organization.id}/invites`
  expectFailure(await admin.post(path, { role: 'owner' }), 403, 'forbidden')
  for (const role of ['admin', 'member', 'viewer']) await newInvite(admin, organization, { role })
  await newInvite(owner, organization, { role: 'owner', email: null })
  expectIssues(await owner.post(path, { role: 'operator' }), 'role invalid_value')
  for (const email of ['', 'ada', 'a@', 'a b@c', 'ä@example.com', `${'a'.repeat(250)}@b.c`]) {
    const { status, body } = await owner.post(path, { role: 'viewer', email })
    expect([email, status, body.details?.[0].path]).toEqual([email, 400, ['email']])
  }
  const known = await owner.post(path, { role: 'viewer', email: admin.email.toUpperCase() })
  expectFailure(known, 409, 'conflict')
})

test('contract §12 inviting an admin or an owner requires a verification', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  await ageVerification(server.sql, owner.sessionId)
  const path = `/api/organizations/${organization.id}/invites`
  for (const role of ['admin', 'owner']) {
    expectFailure(await owner.post(path, { role }), 403, 'verification_needed')
  }
  for (const role of ['member', 'viewer']) await newInvite(owner, organization, { role })
})

test('dashboard §11 open invites are listed newest first, without their links, and can be withdrawn', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/organizations/${organization.id}/invites`
  const made = [
    await newInvite(admin, organization, { role: 'viewer' }),
    await newInvite(admin, organization, { role: 'member', email: 'bob@example.com' }),
    await newInvite(admin, organization, { role: 'viewer' }),
  ]
  const [first, second, third] = made as [(typeof made)[0], (typeof made)[0], (typeof made)[0]]
  await ageInvite(server.sql, first.id, '8 days')
  const page = await admin.get(`${path}?limit=1`)
  expect(page.body.data.items.map(({ id }: { id: string }) => id)).toEqual([third.id])
  const next = await admin.get(`${path}?limit=1&cursor=${page.body.data.nextCursor}`)
  const listed = { id: second.id, email: 'bob@example.com', invitedBy: 'Test person' }
  expect(next.body.data).toMatchObject({ items: [listed], nextCursor: null })
  expect(next.text).not.toContain(second.token)
  expect((await look(second.token)).status).toBe(200)
  expect((await admin.delete(`${path}/${second.id}`)).body.data).toEqual({ id: second.id })
  expectFailure(await admin.delete(`${path}/${second.id}`), 404, 'not_found')
  expectFailure(await admin.delete(`${path}/${first.id}`), 404, 'not_found')
  expectFailure(await look(second.token), 404, 'not_found')
})

test('contract §12 an organization has at most 100 open invites', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  await server.sql`
    insert into invites (id, organization_id, hash, role, invited_by, expires_at)
    select
      gen_random_uuid(), ${organization.uuid}, sha256(n::text::bytea || ${organization.uuid}::text::bytea),
      'viewer', ${admin.uuid}, now() + interval '1 day'
    from generate_series(1, 99) as g (n)
  `
  await newInvite(admin, organization, { role: 'viewer' })
  const path = `/api/organizations/${organization.id}/invites`
  const { status, body } = await admin.post(path, { role: 'viewer' })
  expect([status, body.error]).toEqual([409, expect.stringContaining('Withdraw one first')])
})

describe('reliability §6 an invite is invalid', () => {
  test('after its 7 days', async () => {
    const [organization, owner] = await newTeam(server, 'owner')
    const { id, token } = await newInvite(owner, organization, { role: 'viewer' })
    await ageInvite(server.sql, id, '6 days 23 hours')
    expect((await look(token)).status).toBe(200)
    await ageInvite(server.sql, id, '1 hour')
    expectFailure(await look(token), 404, 'not_found')
  })

  // Changes the database directly, so that no code withdraws the invite.
  test.each([
    ['has too low a role', 'owner', `update memberships set role = 'admin' where account_id = $1`],
    ['may not invite', 'viewer', `update memberships set role = 'member' where account_id = $1`],
    ['is no member', 'viewer', 'delete from memberships where account_id = $1'],
    ['is deleted', 'viewer', 'delete from accounts where id = $1'],
  ])('while its maker %s', async (_, role, change) => {
    const [organization, maker] = await newTeam(server, 'owner')
    const { token } = await newInvite(maker, organization, { role })
    expect((await look(token)).status).toBe(200)
    await server.sql.unsafe(change, [maker.uuid])
    const account = await newSignedInAccount(server)
    const newcomer = { name: 'Eve', email: 'eve@example.com', password: newSecret(128) }
    for (const refused of [
      await look(token),
      await account.post('/api/invites/accept', { token }),
      await createApi(server.url).post('/api/invites/accept', { token, ...newcomer }),
    ]) {
      expectFailure(refused, 404, 'not_found')
    }
  })

  test('for ever once a lost role has withdrawn it, which the audit log has', async () => {
    const [organization, owner] = await newTeam(server, 'owner')
    const path = `/api/organizations/${organization.id}`
    const withdrawn: string[] = []
    for (const end of ['member', 'removed', 'left', 'deleted']) {
      const maker = await newMember(server, organization, 'admin')
      const { id, token } = await newInvite(maker, organization, { role: 'viewer' })
      const at = `${path}/members/${maker.id}`
      if (end === 'member') await owner.patch(at, { role: 'member' })
      else if (end === 'removed') await owner.delete(at)
      else if (end === 'left') await maker.delete(`${path}/membership`)
      else expect((await maker.delete('/api/me')).status).toBe(200)
      withdrawn.push(id)
      await server.sql`
        insert into memberships (organization_id, account_id, role)
        select ${organization.uuid}, id, 'owner' from accounts where id = ${maker.uuid}
        on conflict (organization_id, account_id) do update set role = 'owner'
      `
      expectFailure(await look(token), 404, 'not_found')
    }
    const entries = await listAuditEntries(server.sql, organization.uuid)
    const found = entries.filter(({ action }) => action === 'invite.withdrawn')
    expect(found.map(({ target }) => target)).toEqual(withdrawn)
  })

  test('with an unknown token', async () => {
    for (const token of ['x', 'x'.repeat(43), "' or 1=1", 'é'.repeat(43)]) {
      expectFailure(await look(token), 404, 'not_found')
    }
    expectIssues(await look(''), 'token too_short')
    expectIssues(await look(5), 'token invalid_type')
  })
})
