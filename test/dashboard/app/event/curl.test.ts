import { expect, test } from 'bun:test'
import { toCurl, toShellJson } from '../../../../src/dashboard/app/event/curl.ts'
import type { Event } from '../../../../src/log/events/schema.ts'

const EVENT: Event = {
  ...{ id: 'evt_1', seq: 1, channelId: 'chn_1', channelName: 'ops', userId: null },
  ...{ timestamp: '2026-11-20T09:30:00.000Z', createdAt: '2026-11-20T09:30:00.000Z' },
  ...{ title: 'Disk full', description: null, icon: null, tags: [], metadata: {} },
  ...{ source: 'api', notify: true },
}

test('the command sends the same event, whatever the level of its channel is', () => {
  const readBody = (event: Event) => {
    const [, json = ''] = /-d '([^']*)'$/.exec(toCurl(event, 'https://tidings.example')) ?? []
    return JSON.parse(json)
  }
  const fields = { channelName: 'ops', title: 'Disk full', source: 'api', notify: true }
  expect(readBody(EVENT)).toEqual({ ...fields, level: 'normal' })
  const alert = { level: 'critical', url: "https://example.com/?q='x'&y=$1%20" } as const
  expect(readBody({ ...EVENT, ...alert })).toEqual({ ...fields, ...alert })
})

test('reliability §9 JSON for a shell is equal, without characters that a shell would interpret', () => {
  const hostile = {
    a: `'; rm -rf ~ #`,
    b: '" & calc | more > x < y ^ %PATH% !h! `id` $(id)',
    c: 'back\\slash\\" \\n \n \u001b[2J \u009b \u202e \u2028',
    'k"\\': ['👩‍🚀', 'Zürich'],
  }
  const text = toShellJson(hostile)
  expect(JSON.parse(text)).toEqual(hostile)
  expect(text).not.toMatch(/[&|<>^%!`$'\p{Cc}]|\\"/u)
  expect(text).toContain('👩‍🚀')
})
