import { describe, expect, test } from 'bun:test'
import { ageVerification } from '../../support/worlds/ageing.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { listAuditEntries } from '../../support/audit.ts'
import {
  addMember,
  newMember,
  newOrganization,
  newSignedInAccount,
  newTeam,
  type SignedInAccount,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { insertSubscription } from '../../support/worlds/push.ts'
import { boot, withServer } from '../../support/servers/server.ts'

const server = withServer()

function toPath(organization: TestOrganization, account?: Pick<SignedInAccount, 'id'>): string {
  const path = `/api/organizations/${organization.id}/members`
  return account ? `${path}/${account.id}` : path
}

async function readRoles({ uuid }: TestOrganization): Promise<Record<string, string>> {
  const rows = await server.sql<{ account_id: string; role: string }[]>`
    select account_id, role from memberships where organization_id = ${uuid}
  `
  return Object.fromEntries(rows.map(({ account_id, role }) => [account_id, role]))
}

test('dashboard §11 every member lists the members, in pages', async () => {
  const organization = await newOrganization(server)
  const accounts = [
    await newMember(server, organization, 'owner'),
    await newMember(server, organization, 'member'),
    await newMember(server, organization, 'viewer'),
  ] as const
  await newMember(server, await newOrganization(server), 'owner')
  const [owner, , viewer] = accounts
  const first = await viewer.get(`${toPath(organization)}?limit=2`)
  const person = { id: owner.id, name: 'Test person', email: owner.email, isOperator: false }
  expect(first.body.data.items[0]).toMatchObject({ person, role: 'owner' })
  const { nextCursor } = first.body.data
  const rest = await viewer.get(`${toPath(organization)}?limit=2&cursor=${nextCursor}`)
  const listed = [...first.body.data.items, ...rest.body.data.items]
  expect(listed.map(({ person }) => person.id)).toEqual(accounts.map(({ id }) => id))
  expect(rest.body.data.nextCursor).toBeNull()
  expectIssues(await viewer.get(`${toPath(organization)}?cursor=x`), 'cursor invalid_format')
})

describe('contract §12 roles:', () => {
  test('an owner gives a member any role, with an audit entry', async () => {
    const [organization, owner, member] = await newTeam(server, 'owner', 'viewer')
    for (const role of ['admin', 'owner', 'viewer', 'viewer'] as const) {
      const { status, body } = await owner.patch(toPath(organization, member), { role })
      expect([status, body.data.role, body.data.person.id]).toEqual([200, role, member.id])
    }
    const deeds = await listAuditEntries(server.sql, organization.uuid)
    expect(deeds.map(({ action, details }) => [action, details])).toEqual([
      ['member.roleChanged', { from: 'viewer', to: 'admin' }],
      ['member.roleChanged', { from: 'admin', to: 'owner' }],
      ['member.roleChanged', { from: 'owner', to: 'viewer' }],
    ])
    expectIssues(
      await owner.patch(toPath(organization, member), { role: 'operator' }),
      'role invalid_value',
    )
  })

  test('making a member an admin or an owner requires a verification', async () => {
    const [organization, owner, admin, member] = await newTeam(server, 'owner', 'admin', 'member')
    await ageVerification(server.sql, owner.sessionId)
    for (const role of ['admin', 'owner']) {
      const answer = await owner.patch(toPath(organization, member), { role })
      expectFailure(answer, 403, 'verification_needed')
    }
    for (const [account, role] of [
      [member, 'viewer'],
      [admin, 'admin'],
      [admin, 'member'],
    ] as const) {
      expect((await owner.patch(toPath(organization, account), { role })).status).toBe(200)
    }
  })

  test('an admin can remove members and admins, but neither owners nor themselves', async () => {
    const [organization, owner, admin, other] = await newTeam(server, 'owner', 'admin', 'admin')
    expectFailure(await admin.delete(toPath(organization, owner)), 403, 'forbidden')
    for (const account of [owner, admin]) {
      expectFailure(await account.delete(toPath(organization, account)), 409, 'conflict')
    }
    const removed = await admin.delete(toPath(organization, other))
    expect([removed.status, removed.body.data]).toEqual([200, { id: other.id }])
    expect(await readRoles(organization)).toEqual({ [owner.uuid]: 'owner', [admin.uuid]: 'admin' })
    const deeds = await listAuditEntries(server.sql, organization.uuid)
    expect(deeds).toMatchObject([
      { action: 'member.removed', target: other.id, accountId: admin.uuid },
    ])
  })

  test('case 19: after a member leaves or is removed, every server refuses the next request', async () => {
    await using second = await boot({ databaseUrl: server.databaseUrl })
    const [organization, owner, member, leaver] = await newTeam(server, 'owner', 'admin', 'admin')
    const paths = [
      `/api/projects/${organization.project.id}`,
      `/api/organizations/${organization.id}`,
    ]
    await owner.patch(toPath(organization, member), { role: 'member' })
    expectFailure(await member.get(`${paths[1]}/invites`), 403, 'forbidden')
    await owner.delete(toPath(organization, member))
    expect((await leaver.delete(`/api/organizations/${organization.id}/membership`)).status).toBe(
      200,
    )
    for (const account of [member, leaver]) {
      for (const url of [server.url, second.url]) {
        for (const path of paths) {
          const answer = await fetch(`${url}${path}`, { headers: { cookie: account.cookie } })
          expect(answer.status).toBe(404)
        }
      }
      expect((await account.get('/api/me')).body.data.organizations).toEqual([])
    }
  })
})

describe('reliability §6 the last owner of an organization', () => {
  test('cannot leave or step down', async () => {
    const [organization, owner] = await newTeam(server, 'owner')
    await newMember(server, organization, 'admin')
    const leaving = await owner.delete(`/api/organizations/${organization.id}/membership`)
    expectFailure(leaving, 409, 'conflict')
    expect(leaving.body.error).toContain('Make another member an owner first')
    const path = toPath(organization, owner)
    expectFailure(await owner.patch(path, { role: 'admin' }), 409, 'conflict')
    const next = await newMember(server, organization, 'owner')
    expect((await owner.patch(path, { role: 'admin' })).status).toBe(200)
    expect((await readRoles(organization))[next.uuid]).toBe('owner')
  })

  /** Creates an organization with two owners, who act on it at once. */
  async function collide(
    act: (
      account: SignedInAccount,
      other: SignedInAccount,
      organization: TestOrganization,
    ) => Promise<unknown>,
  ): Promise<string[]> {
    const [organization, one, two] = await newTeam(server, 'owner', 'owner')
    await Promise.all([act(one, two, organization), act(two, one, organization)])
    return Object.values(await readRoles(organization)).sort()
  }

  type Act = Parameters<typeof collide>[0]
  test.each<[string, Act, string[]]>([
    [
      'demote each other',
      (one, other, org) => one.patch(toPath(org, other), { role: 'viewer' }),
      ['owner', 'viewer'],
    ],
    ['remove each other', (one, other, org) => one.delete(toPath(org, other)), ['owner']],
    ['leave', (one, _, org) => one.delete(`/api/organizations/${org.id}/membership`), ['owner']],
    [
      'step down',
      (one, _, org) => one.patch(toPath(org, one), { role: 'admin' }),
      ['admin', 'owner'],
    ],
  ])('stays when two owners %s at once', async (_, act, roles) => {
    for (let round = 0; round < 3; round++) expect(await collide(act)).toEqual(roles)
  })
})

describe('contract §12 a deleted account', () => {
  test('leaves its id and name in the audit logs, and nothing else', async () => {
    const [organization, owner, leaver] = await newTeam(server, 'owner', 'owner')
    const path = `/api/organizations/${organization.id}`
    const { body } = await leaver.post(`${path}/invites`, { role: 'viewer' })
    await leaver.post(`/api/projects/${organization.project.id}/keys`, { name: 'kept' })
    await owner.patch(toPath(organization, owner), { role: 'owner' })
    const link = await leaver.post(`${toPath(organization, owner)}/reset-link`)
    expect([body.data.id, link.status]).toEqual([expect.any(String), 201])
    await insertSubscription(server, leaver)
    const answer = await leaver.delete('/api/me')
    expect([answer.status, answer.body.data]).toEqual([200, {}])
    expect(answer.headers.get('set-cookie')).toContain('Max-Age=0')
    expectFailure(await leaver.get('/api/me'), 401, 'signed_out')

    const { items } = (await owner.get(`${path}/audit?person=${leaver.id}`)).body.data
    expect(items.map(({ action, person }: any) => `${action} ${person.name}`)).toEqual([
      ...['account.deleted Test person', 'member.resetLinkWithdrawn Test person'],
      ...['invite.withdrawn Test person', 'member.resetLinkCreated Test person'],
      ...['key.created Test person', 'invite.created Test person'],
    ])
    expect(items[0].details).toEqual({ name: 'Test person', role: 'owner' })
    expect(await listTablesWith(leaver.uuid, leaver.email)).toEqual(['audit_log'])
    const [kept] = await server.sql`select created_by from api_keys where name = 'kept'`
    expect(kept).toEqual({ created_by: null })
  })

  test('is not the last owner of an organization: the error names the organizations', async () => {
    const shared = await newOrganization(server)
    const own = await newOrganization(server)
    const owner = await newMember(server, shared, 'owner')
    await newMember(server, shared, 'owner')
    await addMember(server, own, owner, 'owner')
    await newMember(server, own, 'admin')
    await owner.patch(`/api/organizations/${own.id}`, { name: 'Only mine' })
    const refused = await owner.delete('/api/me')
    expectFailure(refused, 409, 'conflict')
    expect(refused.body.error).toContain('You are the only owner of "Only mine". Make another')
    await owner.delete(`/api/organizations/${own.id}`)
    expect((await owner.delete('/api/me')).status).toBe(200)
  })

  test('is not the last owner or operator when two delete their accounts at once', async () => {
    const statuses = async (accounts: SignedInAccount[]) =>
      (await Promise.all(accounts.map(account => account.delete('/api/me'))))
        .map(a => a.status)
        .sort()
    for (let round = 0; round < 2; round++) {
      const organization = await newOrganization(server)
      const owners = [1, 2].map(() => newMember(server, organization, 'owner'))
      expect(await statuses(await Promise.all(owners))).toEqual([200, 409])
      await server.sql`update accounts set is_operator = false`
      const operators = [1, 2].map(() => newSignedInAccount(server, { isOperator: true }))
      expect(await statuses(await Promise.all(operators))).toEqual([200, 409])
    }
  })

  /** Returns the tables with a row that contains one of the texts. */
  async function listTablesWith(...texts: string[]): Promise<string[]> {
    const tables = await server.sql<{ name: string }[]>`
      select table_name as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE'
      order by table_name
    `
    const found: string[] = []
    for (const { name } of tables) {
      const rows = await server.sql.unsafe(
        `select from "${name}" t where to_jsonb(t)::text ~ $1 limit 1`,
        [texts.join('|')],
      )
      if (rows.length > 0) found.push(name)
    }
    return found
  }
})

test('contract §12 the export of an account has its own data, without secrets', async () => {
  const [organization, admin, other] = await newTeam(server, 'admin', 'admin')
  await other.post(`/api/organizations/${organization.id}/invites`, { role: 'viewer' })
  await admin.post(`/api/organizations/${organization.id}/invites`, { role: 'viewer' })
  await admin.put(`/api/projects/${organization.project.id}/notifications`, { state: 'mute' })
  await insertSubscription(server, admin)
  const quietHours = [{ days: [6], from: '22:00', to: '07:00', timeZone: 'UTC' }]
  await admin.put('/api/push/quiet-hours', { quietHours })
  await server.sql`update push_subscriptions set quiet_hours = '[]' where account_id = ${admin.uuid}`
  await server.sql`
    insert into openid_connections (id, issuer, subject, account_id, provider)
    values (gen_random_uuid(), 'https://id.example.com', ${admin.uuid}, ${admin.uuid}, 'example')
  `
  await server.sql`insert into known_devices (id, account_id, hash) values (gen_random_uuid(), ${admin.uuid}, sha256('browser'))`
  // More than one page.
  await server.sql`
    insert into audit_log (id, actor, account_id, action, details)
    select gen_random_uuid(), 'account', ${admin.uuid}, 'account.edited', '{}'
    from generate_series(1, 1200)
  `
  const answer = await admin.get('/api/me/export')
  expect([answer.status, answer.headers.get('content-disposition')]).toEqual([
    200,
    'attachment; filename="tidings-account.json"',
  ])
  const { account, memberships, ...lists } = answer.body
  expect(account).toMatchObject({ id: admin.id, email: admin.email, quietHours })
  expect(memberships).toMatchObject([{ organization: { id: organization.id }, role: 'admin' }])
  expect(lists).toMatchObject({
    sessions: [{ address: '127.0.0.1', userAgent: 'test' }],
    connections: [{ provider: 'example', issuer: 'https://id.example.com', subject: admin.uuid }],
    invites: [{ role: 'viewer' }],
    knownBrowsers: [{ lastUsedAt: expect.any(String) }],
    pushSubscriptions: [{ isOn: true, quietHours: [], hasQuietSummary: false }],
    notificationSettings: [{ projectId: organization.project.id, channelId: null, state: 'mute' }],
  })
  expect(Object.keys(lists.knownBrowsers[0])).toEqual(['lastUsedAt'])
  const actions = lists.auditEntries.map(({ action }: any) => action)
  expect(actions.filter((action: string) => action === 'account.edited')).toHaveLength(1200)
  expect(actions).toContain('account.exported')
  expect(new Set(lists.auditEntries.map(({ id }: any) => id)).size).toBe(actions.length)
  for (const secret of [other.id, other.email, '_hash', '"hash', 'p256dh', 'endpoint']) {
    expect([secret, answer.text.includes(secret)]).toEqual([secret, false])
  }
})

test('contract §12 every table with rows of accounts is exported, or has a reason not to be', async () => {
  const NOT_EXPORTED = [
    // They belong to a project, and name the account as their author.
    ...['api_keys', 'alias_changes'],
    // They hold nothing but secrets.
    ...['reset_links', 'recovery_codes', 'totp_secrets', 'sign_in_steps'],
  ]
  const source = await Bun.file('src/access/account/account-export.ts').text()
  const tables = await server.sql<{ name: string }[]>`
    select distinct conrelid::regclass::text as name
    from pg_constraint
    where contype = 'f' and confrelid = 'accounts'::regclass
  `
  const missing = tables.filter(({ name }) => !source.includes(`from ${name} `))
  expect(missing.map(({ name }) => name).sort()).toEqual(NOT_EXPORTED.sort())
})
