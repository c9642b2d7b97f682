import { expect, test } from 'bun:test'
import { expectFailure } from '../support/answers.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { openRaw, toRequest } from '../support/clients/raw-http.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { until } from '../support/until.ts'

const server = withSharedServer()

test('case 19: a member who is removed while a body arrives is refused once it has arrived', async () => {
  const organization = await newOrganization(server)
  const admin = await newMember(server, organization, 'admin')
  await server.sql`
    update sessions set last_seen_at = last_seen_at - interval '5 minutes' where id = ${admin.sessionId}
  `
  const body = '{"name": "Too late"}'
  using connection = openRaw(server.url)
  connection.write(
    toRequest(`PATCH /api/projects/${organization.project.id} HTTP/1.1`, [
      `Host: ${new URL(server.url).host}`,
      `Cookie: ${admin.cookie}`,
      'Sec-Fetch-Site: same-origin',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]),
  )
  connection.write(body.slice(0, 5))
  await until(async () => {
    const [seen] = await server.sql`
      select from sessions
      where id = ${admin.sessionId} and last_seen_at > now() - interval '1 minute'
    `
    return seen !== undefined
  })
  await server.sql`delete from memberships where account_id = ${admin.uuid}`
  connection.write(body.slice(5))
  expectFailure(await connection.answer(), 404, 'not_found')
  const [project] = await server.sql`
    select name from projects where id = ${organization.project.uuid}
  `
  expect(project?.['name']).toBe('Test project')
})
