import { beforeEach, expect, test } from 'bun:test'
import { expectIssues } from '../support/answers.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'

const server = withSharedServer()
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

test('contract §2 a timestamp is ISO 8601, or a number, and is read back as it is answered', async () => {
  for (const [timestamp, kept] of [
    ['2026-01-31T09:30:00.123456789Z', '2026-01-31T09:30:00.123Z'],
    ['1700000000250', '2023-11-14T22:13:20.250Z'],
    ['0100-01-01T00:00:00Z', '0100-01-01T00:00:00.000Z'],
    [0, '1970-01-01T00:00:00.000Z'],
    [1_700_000_000.25, '2023-11-14T22:13:20.250Z'],
  ] as const) {
    const { body } = await post({ timestamp })
    const read = await project.get(`/v1/events/${body.data.id}`)
    expect([body.data.timestamp, read.body.data.timestamp]).toEqual([kept, kept])
  }
  for (const timestamp of ['', '2026-01-31T09:30:00', '9999-12-31T23:59:59-01:00'])
    expectIssues(await post({ timestamp }), 'timestamp invalid_format')
  const soon = Date.now() / 1000 + 305
  expectIssues(await post({ timestamp: soon }), 'timestamp out_of_range')
})
