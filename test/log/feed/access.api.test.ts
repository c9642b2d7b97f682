import { expect, test } from 'bun:test'
import { openFeed } from '../../support/clients/feed.ts'
import { forFile } from '../../support/for-file.ts'
import { boot, withSharedServer } from '../../support/servers/server.ts'
import { newFeedProject, type FeedProject } from '../../support/worlds/feed-project.ts'

const server = withSharedServer()
const other = forFile(() => boot({ databaseUrl: server.databaseUrl }))

/** Ways to end a member's access, done directly in the database. */
const ENDS: [string, (watched: FeedProject) => Promise<unknown>][] = [
  ['sign-out', ({ member }) => server.sql`delete from sessions where account_id = ${member.uuid}`],
  [
    'seven days without use',
    ({ member }) => server.sql`
      update sessions set last_seen_at = last_seen_at - interval '7 days' where account_id = ${member.uuid}
    `,
  ],
  [
    'thirty days',
    ({ member }) => server.sql`
      update sessions set created_at = created_at - interval '30 days' where account_id = ${member.uuid}
    `,
  ],
  [
    'the end of a membership',
    ({ member }) => server.sql`delete from memberships where account_id = ${member.uuid}`,
  ],
  [
    'the end of an account',
    async ({ member }) => expect((await member.delete('/api/me')).status).toBe(200),
  ],
  [
    'the requirement of a second factor',
    ({ organizationId }) => server.sql`
      update organizations set requires_second_factor = true where id = ${organizationId}
    `,
  ],
  [
    'the deletion of the project',
    ({ id }) => server.sql`update projects set deleted_at = now() where id = ${id}`,
  ],
  [
    'the deletion of the organization',
    ({ organizationId }) => server.sql`
      update organizations set deleted_at = now() where id = ${organizationId}
    `,
  ],
]

test("case 19: the end of access closes a member's sockets on every server, and no others", async () => {
  const stays = await newFeedProject(server)
  const bystander = await openFeed(other.url, stays.member)
  await bystander.subscribe(stays.project)
  const codes = ENDS.map(async ([what, end]) => {
    const watched = await newFeedProject(server)
    const clients = [
      await openFeed(server.url, watched.member),
      await openFeed(other.url, watched.member),
    ]
    for (const client of clients) await client.subscribe(watched.project)
    await end(watched)
    const closed = await Promise.all(clients.map(client => client.closed))
    return [what, ...closed.map(({ code }) => code)]
  })
  expect(await Promise.all(codes)).toEqual(ENDS.map(([what]) => [what, 1008, 1008]))
  const { seq } = await stays.postEvent('still there')
  expect(await bystander.seqs(1)).toEqual([seq])
  bystander.close()
})

test('case 19: a socket without streams is closed at sign-out, too', async () => {
  const { member } = await newFeedProject(server)
  const client = await openFeed(other.url, member)
  await server.sql`delete from sessions where id = ${member.sessionId}`
  expect((await client.closed).code).toBe(1008)
})

test('reliability §7 a client that is ahead of its new server gets no event twice', async () => {
  const watched = await newFeedProject(server)
  const resident = await openFeed(other.url, watched.member)
  await resident.subscribe(watched.project)
  for (let nth = 0; nth < 6; nth++) {
    const { seq } = await watched.postEvent('x')
    // Connects at once, so that the other server may not have seen the event yet.
    const client = await openFeed(other.url, watched.member)
    expect((await client.subscribe(watched.project, { after: seq })).recovered).toBe(true)
    await watched.postEvent('y')
    expect(await client.seqs(1)).toEqual([seq + 1])
    client.close()
  }
  expect(await resident.seqs(12)).toEqual(Array.from({ length: 12 }, (_, nth) => nth + 1))
  resident.close()
})

test('§5 stop: sockets are closed with 1001', async () => {
  const leaving = await boot({ databaseUrl: server.databaseUrl })
  const watched = await newFeedProject(leaving)
  const client = await openFeed(leaving.url, watched.member)
  await client.subscribe(watched.project)
  const stopped = leaving[Symbol.asyncDispose]()
  expect((await client.closed).code).toBe(1001)
  await stopped
})
