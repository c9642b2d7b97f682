import { beforeAll, expect, test } from 'bun:test'
import postgres from 'postgres'
import { listEventsJson } from '../../../src/log/events/read.ts'
import { toListFilters } from '../../../src/log/events/search-schema.ts'
import { parseId } from '../../../src/base/ids.ts'
import {
  newMember,
  newOrganization,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { withSharedServer } from '../../support/servers/server.ts'

const server = withSharedServer()
let viewer: SignedInAccount
let base: string
const ids: string[] = []

beforeAll(async () => {
  const organization = await newOrganization(server)
  viewer = await newMember(server, organization, 'viewer')
  base = `/api/projects/${organization.project.id}`
  const key = await createKey(server.sql, { projectId: organization.project.uuid, name: 'test' })
  const { post } = createRequests(server.url, key.token)
  for (let n = 1; n <= 12; n++) {
    const event = {
      channelName: n % 3 === 0 ? 'ops' : 'payments',
      title: n % 2 === 0 ? `Payment ${n} received` : `Backup ${n} failed`,
      tags: n % 4 === 0 ? ['vip'] : [],
      timestamp: `2026-03-01T${String(n).padStart(2, '0')}:30:00Z`,
    }
    ids.push((await post('/v1/events', event)).body.data.id)
  }
})

test('dashboard §3 the range of the histogram narrows the list', async () => {
  const range = 'from=2026-03-01T04:00:00Z&to=2026-03-01T07:00:00Z'
  const { body } = await viewer.get(`${base}/events?${range}`)
  expect(body.data.items.map(({ seq }: any) => seq)).toEqual([6, 5, 4])
  const histogram = await viewer.get(`${base}/histogram?${range}`)
  expect(histogram.body.data.total).toBe(3)
})

test('dashboard §5 an event has a page with its neighbours', async () => {
  const { body } = await viewer.get(`${base}/events/${ids[4]}`)
  expect(body.data.title).toBe('Backup 5 failed')
  const around = await viewer.get(`${base}/events/${ids[4]}/neighbours`)
  expect(around.body.data).toEqual({
    older: { id: ids[3], seq: 4 },
    newer: { id: ids[5], seq: 6 },
  })
  const last = await viewer.get(`${base}/events/${ids[11]}/neighbours`)
  expect(last.body.data.newer).toBeNull()
})

test('a page of /api is compressed if the browser accepts it', async () => {
  const answer = (encoding: string) =>
    viewer.request(`${base}/events`, { headers: { 'accept-encoding': encoding } })
  const lengths: number[] = []
  for (const [accepted, coding] of [
    ['identity', null],
    ['gzip, br', 'gzip'],
    ['gzip;q=0', null],
  ] as const) {
    const { headers, body } = await answer(accepted)
    expect([accepted, headers.get('content-encoding')]).toEqual([accepted, coding])
    expect(headers.get('vary')).toContain('Accept-Encoding')
    expect(body.data.items).toHaveLength(12)
    lengths.push(Number(headers.get('content-length')))
  }
  expect(lengths[1]).toBeLessThan(lengths[0]! / 3)
})

test('a large page of /api is compressed while it is sent', async () => {
  const organization = await newOrganization(server)
  const { project } = organization
  const member = await newMember(server, organization, 'member')
  const key = await createKey(server.sql, { projectId: project.uuid, name: 'test' })
  const { post } = createRequests(server.url, key.token)
  const text = Array.from({ length: 60_000 }, (_, at) => at)
    .join(' ')
    .slice(0, 200_000)
  await post('/v1/events', { channelName: 'large', title: 'Large', metadata: { text } })
  const { headers, body } = await member.get(`/api/projects/${project.id}/events`)
  expect(headers.get('content-encoding')).toBe('gzip')
  expect(body.data.items[0].metadata.text).toBe(text)
})

test('a page whose first statement is canceled is read in smaller batches', async () => {
  const projectId = parseId('prj', base.split('/').at(-1) ?? '') ?? ''
  let canceled = 0
  const sql = new Proxy(server.sql, {
    apply(target, self, args: [TemplateStringsArray]) {
      if (!args[0].join('').includes('list_events')) return Reflect.apply(target, self, args)
      canceled++
      return Promise.reject(
        Object.assign(new postgres.PostgresError('canceled' as never), { code: '57014' }),
      )
    },
  })
  const filters = toListFilters({ tag: 'vip' })
  const page = JSON.parse(await listEventsJson(sql, projectId, filters, { limit: 2 }))
  expect(page.items.map(({ seq }: any) => seq)).toEqual([12, 8])
  expect([canceled, page.nextCursor]).toEqual([1, expect.any(String)])
})

test.each([
  ['q=before:soon', ['q', 'before']],
  ['q=has:feathers', ['q', 'has']],
  ['from=yesterday', ['from']],
  ['cursor=nonsense', ['cursor']],
  ['limit=0', ['limit']],
])('a bad query (%s) is a 400 that names its part', async (query, path) => {
  for (const list of query.startsWith('q') || query.startsWith('from')
    ? ['events', 'histogram']
    : ['events']) {
    const { status, body } = await viewer.get(`${base}/${list}?${query}`)
    expect([list, status, body.details[0].path]).toEqual([list, 400, path])
  }
})
