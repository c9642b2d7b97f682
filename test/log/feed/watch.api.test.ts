import { expect, test } from 'bun:test'
import { openFeed, type Message } from '../../support/clients/feed.ts'
import { newFeedProject } from '../../support/worlds/feed-project.ts'
import { withSharedServer } from '../../support/servers/server.ts'

const server = withSharedServer()

/** Takes messages until the heads have been told that `wanted` names. */
async function takeHeads(
  { next }: { next(): Promise<Message> },
  wanted: Record<string, number>,
): Promise<void> {
  const told: Record<string, number> = {}
  while (Object.entries(wanted).some(([project, head]) => told[project] !== head)) {
    const message = await next()
    expect(message.type).toBe('heads')
    Object.assign(told, message.heads)
  }
}

test('a socket that watches hears the heads of all projects of its account, and of no others', async () => {
  const [first, second, stranger] = [
    await newFeedProject(server),
    await newFeedProject(server),
    await newFeedProject(server),
  ]
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${second.organizationId}, ${first.member.uuid}, 'viewer')
  `
  await first.postEvents(2)
  await stranger.postEvents(1)
  const client = await openFeed(server.url, first.member)
  client.send({ type: 'watch' })
  expect(await client.next()).toEqual({
    type: 'heads',
    heads: { [first.project]: 2, [second.project]: 0 },
  })
  await stranger.postEvents(1)
  await second.postEvents(3)
  await takeHeads(client, { [second.project]: 3 })
  // Only changes are told.
  await first.postEvents(1)
  await takeHeads(client, { [first.project]: 3 })
  expect(JSON.stringify(client.all)).not.toContain(stranger.project)

  // Access is read with the heads: a former member hears no more of a project.
  await server.sql`
    delete from memberships
    where organization_id = ${second.organizationId} and account_id = ${first.member.uuid}
  `
  await second.postEvents(1)
  await first.postEvents(1)
  await takeHeads(client, { [first.project]: 4 })
  expect(client.all.filter(({ heads }) => heads?.[second.project] === 4)).toEqual([])

  // A socket can watch and subscribe.
  expect(await client.subscribe(first.project, { after: 4 })).toMatchObject({ type: 'subscribed' })
  await server.sql`delete from sessions where account_id = ${first.member.uuid}`
  expect((await client.closed).code).toBe(1008)
})

test('an account without projects hears that there are none, once', async () => {
  const { member, organizationId } = await newFeedProject(server)
  await server.sql`delete from memberships where organization_id = ${organizationId}`
  const client = await openFeed(server.url, member)
  client.send({ type: 'watch' })
  expect(await client.next()).toEqual({ type: 'heads', heads: {} })
  client.send({ type: 'subscribe', project: 'prj_unknown' })
  expect(await client.next()).toMatchObject({ type: 'error', code: 'not_found' })
  client.close()
})
