import { expect, test } from 'bun:test'
import { forFile } from '../../support/for-file.ts'
import { boot, withSharedServer } from '../../support/servers/server.ts'
import { createRequests, newProject } from '../../support/worlds/project.ts'

const server = withSharedServer()
/** A second process on the same database. */
const sibling = forFile(() => boot({ databaseUrl: server.databaseUrl }))

test('§4.1.3 an existing alias is reported with a reason that names its cause', async () => {
  const { post } = await newProject(server)
  await post('/v1/identify', { user_id: 'bob', aliases: ['@bob'] })
  await post('/v1/identify', { user_id: 'ada', aliases: ['@ada'] })
  const { status, body } = await post('/v1/identify', {
    user_id: 'ada',
    aliases: ['@ada', '@bob', 'bob', 'ada', 'new', 'new', 'newer'],
  })
  expect(status).toBe(200)
  expect(body.data.aliases).toEqual({
    created: ['new', 'newer'],
    failed: [
      { alias: '@ada', reason: 'Already an alias of this user' },
      { alias: '@bob', reason: 'Already an alias of another user' },
      { alias: 'bob', reason: "Equals another user's user_id" },
      { alias: 'ada', reason: "Equals this user's own user_id" },
      { alias: 'new', reason: 'Repeated in this request' },
    ],
  })
})

test('contract §3 a user has at most 1,000 aliases, and the others are reported', async () => {
  const { id, post } = await newProject(server)
  const claim = async (first: number, count: number) => {
    const aliases = Array.from({ length: count }, (_, n) => `alias ${first + n}`)
    return (await post('/v1/identify', { user_id: 'ada', aliases })).body.data.aliases
  }
  await post('/v1/identify', { user_id: 'ada', aliases: ['one more'] })
  await server.sql`
    insert into aliases (project_id, alias, user_id, created_at)
    select ${id}, 'alias ' || n, 'ada', now() from generate_series(0, 949) as n
  `
  const reason = 'This user already has 1,000 aliases'
  const last = await claim(950, 50)
  expect(last.created).toHaveLength(49)
  expect(last.failed).toEqual([{ alias: 'alias 999', reason }])
  expect(await claim(2_000, 2)).toEqual({
    created: [],
    failed: [
      { alias: 'alias 2000', reason },
      { alias: 'alias 2001', reason },
    ],
  })
  const other = await post('/v1/identify', { user_id: 'bob', aliases: ['alias 2000'] })
  expect(other.body.data.aliases).toEqual({ created: ['alias 2000'] })
})

test('contract §2 userId is no spelling of user_id: no drop-in client sends it', async () => {
  const { id, post } = await newProject(server)
  const { status, body } = await post('/v1/identify', { userId: 'ada' })
  expect(status).toBe(400)
  expect(body.details).toEqual([{ path: ['user_id'], message: 'Required', code: 'required' }])
  const both = await post('/v1/identify', { user_id: 'ada', userId: 'bob' })
  expect(both.body.data.userId).toBe('ada')
  const ignored = await post('/v1/identify', { user_id: 'ada', userId: 5 })
  expect(ignored.status).toBe(200)
  expect(await countIdentities(id)).toBe(1)
})

test('contract §3 updatedAt changes on every call', async () => {
  const { post } = await newProject(server)
  const sent = Array.from({ length: 30 }, () => post('/v1/identify', { user_id: 'ada' }))
  const together = (await Promise.all(sent)).map(({ body }) => body.data.updatedAt)
  expect(new Set(together).size).toBe(30)
  let last = together.sort().at(-1)
  for (let n = 0; n < 5; n++) {
    const { updatedAt } = (await post('/v1/identify', { user_id: 'ada' })).body.data
    expect(updatedAt > last).toBe(true)
    last = updatedAt
  }
})

test('contract §3 concurrent identifies of one user create one identity, also over two processes', async () => {
  const { id, key, post } = await newProject(server)
  const other = createRequests(sibling.url, key)
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      (n % 2 ? post : other.post)('/v1/identify', { user_id: 'ada', properties: { n } }),
    ),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(1)
  expect(await countIdentities(id)).toBe(1)
  const last = answers
    .sort((a, b) => (a.body.data.updatedAt < b.body.data.updatedAt ? -1 : 1))
    .at(-1)
  const stored = (await createRequests(server.url, key).get('/v1/users/ada')).body.data
  expect(stored).toMatchObject({
    properties: last?.body.data.properties,
    updatedAt: last?.body.data.updatedAt,
  })
})

async function countIdentities(projectId: string): Promise<number> {
  const [row] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from identities where project_id = ${projectId}
  `
  return row.n
}
