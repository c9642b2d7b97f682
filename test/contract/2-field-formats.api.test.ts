import { beforeEach, describe, expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
import { withServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'

const server = withServer()
let project: TestProject
beforeEach(async () => {
  project = await newProject(server)
})

const post = (fields: object) =>
  project.post('/v1/events', { channelName: 'a', title: 't', ...fields })

// The tables of icons and timestamps are in test/log/events/new-event.test.ts.
test('case 7: an icon is stored as one emoji, and other texts are refused', async () => {
  for (const [icon, kept] of [
    [' ❤\n', '❤️'],
    [':rocket:', '🚀'],
    ['', null],
    [' ', null],
  ] as const)
    expect((await post({ icon })).body.data.icon).toBe(kept)
  for (const icon of ['1', '😀😀', ':smiley_of_mine:', '😀'.repeat(50_000)])
    expectIssues(await post({ icon }), 'icon invalid_format')
})

describe('contract §2 a timestamp is ISO 8601, or a number:', () => {
  test.each([
    ['2026-01-31T09:30:00.123456789Z', '2026-01-31T09:30:00.123Z'],
    ['1700000000250', '2023-11-14T22:13:20.250Z'],
    ['0100-01-01T00:00:00Z', '0100-01-01T00:00:00.000Z'],
    [0, '1970-01-01T00:00:00.000Z'],
    [1_700_000_000.25, '2023-11-14T22:13:20.250Z'],
  ])('%p -> %s', async (timestamp, kept) => {
    const { body } = await post({ timestamp })
    expect(body.data.timestamp).toBe(kept)
    expect((await project.get(`/v1/events/${body.data.id}`)).body.data.timestamp).toBe(kept)
  })

  test('other texts and numbers are refused', async () => {
    for (const timestamp of ['', '2026-01-31T09:30:00', '0099-12-31T23:59:59Z'])
      expectIssues(await post({ timestamp }), 'timestamp invalid_format')
    for (const timestamp of [-1, 99_999_999_999, 1e300])
      expectIssues(await post({ timestamp }), 'timestamp out_of_range')
  })

  test('every other type is refused', async () => {
    for (const timestamp of [null, true, [], {}, [1_700_000_000]]) {
      expectIssues(await post({ timestamp }), 'timestamp invalid_type')
    }
  })

  test('a timestamp is at most 5 minutes ahead', async () => {
    const ahead = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
    expect((await post({ timestamp: ahead(295) })).status).toBe(201)
    for (const unit of [1, 1000]) {
      const number = (seconds: number) => (Date.now() / 1000 + seconds) * unit
      expect((await post({ timestamp: number(295) })).status).toBe(201)
      expectIssues(await post({ timestamp: number(305) }), 'timestamp out_of_range')
    }
    expect(listIssues(await post({ timestamp: ahead(305) }))).toEqual(['timestamp out_of_range'])
    expect(listIssues(await post({ timestamp: '9999-12-31T23:59:59Z' }))).toEqual([
      'timestamp out_of_range',
    ])
    expect(listIssues(await post({ timestamp: '9999-12-31T23:59:59-01:00' }))).toEqual([
      'timestamp invalid_format',
    ])
  })
})
