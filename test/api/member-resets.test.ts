import { afterAll, beforeAll, expect, test } from 'bun:test'
import { expectFailure } from '../support/answers.ts'
import { listActions } from '../support/audit.ts'
import { newMember, newOrganization, newPerson, type TestPerson } from '../support/person.ts'
import { boot, type Booted } from '../support/server.ts'

let server: Booted
beforeAll(async () => {
  server = await boot()
})
afterAll(() => server[Symbol.asyncDispose]())

async function countLinks({ uuid }: TestPerson): Promise<number> {
  return (await server.sql`select from reset_links where person_id = ${uuid}`).length
}

async function join(
  organization: { uuid: string },
  person: TestPerson,
  role: string,
): Promise<void> {
  await server.sql`
    insert into memberships (organization_id, person_id, role)
    values (${organization.uuid}, ${person.uuid}, ${role})
  `
}

test('reliability §6 an owner makes a reset link for a member, whose token is kept as a hash alone', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const member = await newMember(server, organization, 'admin')
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
  expect(await listActions(server.sql, organization.uuid)).toContain('member.resetLinkCreated')
})

test('reliability §6 a reset link takes an owner of every organization that the member belongs to', async () => {
  const organization = await newOrganization(server)
  const elsewhere = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const member = await newMember(server, organization, 'viewer')
  await join(elsewhere, member, 'viewer')
  const path = `/api/organizations/${organization.id}/members/${member.id}/reset-link`
  const refused = await owner.post(path)
  expectFailure(refused, 403, 'forbidden')
  expect(refused.body.error).toContain('tidings owner reset')
  await join(elsewhere, owner, 'admin')
  expectFailure(await owner.post(path), 403, 'forbidden')
  expect(await countLinks(member)).toBe(0)
  await server.sql`
    update memberships set role = 'owner'
    where organization_id = ${elsewhere.uuid} and person_id = ${owner.uuid}
  `
  expect((await owner.post(path)).status).toBe(201)
})

test('reliability §6 an owner makes no reset link for the operator, unless they are one', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const operator = await newPerson(server, { isOperator: true })
  const another = await newPerson(server, { isOperator: true })
  await join(organization, operator, 'viewer')
  await join(organization, another, 'owner')
  const path = `/api/organizations/${organization.id}/members/${operator.id}/reset-link`
  expectFailure(await owner.post(path), 403, 'forbidden')
  expect(await countLinks(operator)).toBe(0)
  expect((await another.post(path)).status).toBe(201)
})

test('reliability §6 nobody makes a reset link for themselves: a session is no password', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const path = `/api/organizations/${organization.id}/members/${owner.id}/reset-link`
  expectFailure(await owner.post(path), 409, 'conflict')
  expect(await countLinks(owner)).toBe(0)
})
