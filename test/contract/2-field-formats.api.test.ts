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

describe('case 7: an icon is one emoji:', () => {
  test.each([
    ['a face', '😀', '😀'],
    ['a family', '👨‍👩‍👧‍👦', '👨‍👩‍👧‍👦'],
    ['England', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
    ['a keycap', '1️⃣', '1️⃣'],
    ['a heart in text style', '❤', '❤️'],
    ['a copyright sign', '©', '©️'],
    ['a skin tone', '👍🏽', '👍🏽'],
    ['a flag of a country', '🇨🇭', '🇨🇭'],
    ['a flag of a movement', '🏳️‍⚧️', '🏳️‍⚧️'],
    ['a phoenix', '🐦‍🔥', '🐦‍🔥'],
    ['ten code points', '👩🏼‍❤️‍💋‍👨🏿', '👩🏼‍❤️‍💋‍👨🏿'],
    ['an emoji with space around', ' 😀\n', '😀'],
    ['a shortcode', ':rocket:', '🚀'],
    ['a sequence without its selectors', '❤‍🔥', '❤️‍🔥'],
    ['an emoji newer than our table', '🐦‍🐛', '🐦‍🐛'],
    ['nothing', '', null],
    ['a space', ' ', null],
  ])('accepts %s', async (_, icon, kept) => {
    expect((await post({ icon })).body.data.icon).toBe(kept)
  })

  test.each([
    ['a digit', '1'],
    ['a letter', 'a'],
    ['two', '😀😀'],
    ['the flag of no country', '🇽🇽'],
    ['half a flag', '🇨'],
    ['Texas', '🏴\u{e0075}\u{e0073}\u{e0074}\u{e0078}\u{e007f}'],
    ['stacked marks', `a${'\u0301'.repeat(20)}`],
    ['marks on an emoji', `😀${'\u0301'.repeat(20)}`],
    ['a bomb of joiners', Array.from({ length: 200 }, () => '👨').join('\u200d')],
    ['a bomb of tags', `🏴${'\u{e0061}'.repeat(50)}`],
    ['a long text', '😀'.repeat(50_000)],
    ['an unknown shortcode', ':smiley_of_mine:'],
    ['a selector alone', '\ufe0f'],
  ])('refuses %s', async (_, icon) => {
    expectIssues(await post({ icon }), 'icon invalid_format')
  })
})

describe('contract §2 a timestamp is ISO 8601:', () => {
  test.each([
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00.123456789Z', '2026-01-31T09:30:00.123Z'],
    ['2026-01-31T09:30+02:00', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31t09:30:00,5-0530', '2026-01-31T15:00:00.500Z'],
    ['2026-01-31 09:30:00z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['20260131T093000Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31 10:30:00.5 +0100', '2026-01-31T09:30:00.500Z'],
    ['2026-01-31T10:30:00+01:00[Europe/Paris]', '2026-01-31T09:30:00.000Z'],
    ['1700000000', '2023-11-14T22:13:20.000Z'],
    ['1700000000250', '2023-11-14T22:13:20.250Z'],
    ['2024-02-29T23:59:60Z', '2024-02-29T23:59:59.999Z'],
    ['0100-01-01T00:00:00Z', '0100-01-01T00:00:00.000Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ])('%s -> %s', async (timestamp, kept) => {
    const { body } = await post({ timestamp })
    expect(body.data.timestamp).toBe(kept)
    expect((await project.get(`/v1/events/${body.data.id}`)).body.data.timestamp).toBe(kept)
  })

  test.each([
    '',
    'now',
    '2026-01-31T09:30:00',
    '2026-02-29',
    '2026-13-01',
    '2026-00-10',
    '2026-01-32T00:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T09:60:00Z',
    '2026-01-31T09:30:61Z',
    '2026-01-31T09:30:00+24:00',
    '2026-1-1',
    '20260131T093000',
    '99999999999999999',
    '2026-01-31T09:30:00[Europe/Paris]',
    '0001-01-01T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '0099-12-31T23:59:59Z',
    '0100-01-01T00:00:00+00:01',
    '+002026-01-31T00:00:00Z',
    ' 2026-01-31',
    'Sat, 31 Jan 2026 09:30:00 GMT',
  ])('%s is refused', async timestamp => {
    expectIssues(await post({ timestamp }), 'timestamp invalid_format')
  })

  test.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [1_700_000_000, '2023-11-14T22:13:20.000Z'],
    [1_700_000_000.25, '2023-11-14T22:13:20.250Z'],
    [1_700_000_000_250, '2023-11-14T22:13:20.250Z'],
    [100_000_000_000, '1973-03-03T09:46:40.000Z'],
  ])(
    'a timestamp may be a number in Unix seconds or milliseconds: %d -> %s',
    async (timestamp, kept) => {
      const { body } = await post({ timestamp })
      expect(body.data.timestamp).toBe(kept)
      expect((await project.get(`/v1/events/${body.data.id}`)).body.data.timestamp).toBe(kept)
    },
  )

  test.each([-1, 99_999_999_999, 1e300, 8.64e15])('the number %d is refused', async timestamp => {
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
