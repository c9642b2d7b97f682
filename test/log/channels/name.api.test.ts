import { beforeEach, expect, test } from 'bun:test'
import { expectIssues } from '../../support/answers.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'

const server = withSharedServer()
let project: TestProject
beforeEach(async () => {
  project = await newProject(server)
})

const post = (fields: object) =>
  project.post('/v1/events', { channelName: 'a', title: 't', ...fields })

/** Returns the channel of an event with this channelName. */
async function toChannel(channelName: string): Promise<{ id: string; name: string }> {
  const { status, body } = await post({ channelName })
  expect([channelName, status]).toEqual([channelName, 201])
  return { id: body.data.channelId, name: body.data.channelName }
}

const POINTS: [string, string][] = [
  ['U+0001', '\u0001'],
  ['a line break', '\n'],
  ['a soft hyphen', '\u00ad'],
  ['the Arabic letter mark', '\u061c'],
  ['a zero-width space', '\u200b'],
  ['a zero-width joiner', '\u200d'],
  ['a line separator', '\u2028'],
  ['a right-to-left override', '\u202e'],
  ['a byte order mark', '\ufeff'],
  ['a variation selector', '\ufe0f'],
  ['a tag letter', '\u{e0061}'],
  ['a supplementary variation selector', '\u{e0100}'],
]

test.each(POINTS)('contract §2 a channelName with %s is refused', async (_, point) => {
  for (const channelName of [`a${point}b`, `é${point}é`]) {
    expectIssues(await post({ channelName }), 'channelName invalid_format')
    const answer = await project.request(`/v1/channels/${encodeURIComponent(channelName)}`, {
      method: 'POST',
      body: 'x',
      headers: { 'content-type': 'text/plain' },
    })
    expectIssues(answer, 'name invalid_format')
  }
})

test('contract §2 joiners and variation selectors are accepted inside emoji, and nowhere else', async () => {
  for (const emoji of ['👨‍👩‍👧‍👦', '🏳️‍⚧️', '❤️‍🔥', '👩🏽‍🚒', '1️⃣', '#️⃣', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇨🇭', '❤️', '🐦‍🔥', '👁️‍🗨️']) {
    expect((await toChannel(`team ${emoji}`)).name).toBe(`team ${emoji}`)
  }
  for (const channelName of [
    '👨\u200d',
    '\u200d👨',
    '👨\u200d\u200d👩',
    'a\u200d👩',
    '👨\u200da',
    '1\ufe0f',
    'a\ufe0f\u20e3',
  ]) {
    expectIssues(await post({ channelName }), 'channelName invalid_format')
  }
})

test('contract §2 the length of a channel name counts after composition: 255 letters with an accent each are 255', async () => {
  expect((await toChannel('e\u0301'.repeat(255))).name).toBe('é'.repeat(255))
  expectIssues(await post({ channelName: 'e\u0301'.repeat(256) }), 'channelName too_long')
})

test('contract §2 concurrent spellings of a name create one channel', async () => {
  const names = Array.from({ length: 40 }, (_, n) => (n % 2 ? 'Big Race' : 'big  race'))
  const channels = await Promise.all(names.map(toChannel))
  expect(new Set(channels.map(({ id }) => id)).size).toBe(1)
  expect(new Set(channels.map(({ name }) => name)).size).toBe(1)
})
