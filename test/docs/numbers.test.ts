import { describe, expect, test } from 'bun:test'
import { WEBHOOK_SCHEDULE_MS } from '../../src/delivery/outbox/schedule.ts'
import { listRows, readSection, readText } from '../support/docs.ts'

const BREAKER = 'src/delivery/webhooks/circuit-breaker.ts'
const WEBHOOKS = constant('src/delivery/webhooks/editing.ts', 'MAX_WEBHOOKS')
const BACKLOG = constant('src/delivery/webhooks/dispatch.ts', 'MAX_BACKLOG')
const TIMEOUT_S = constant('src/delivery/webhooks/sender.ts', 'WEBHOOK_TIMEOUT_MS') / 1_000
const VIEWS = constant('src/log/views/schema.ts', 'MAX_VIEWS')
const SOCKETS = constant('src/log/feed/sockets.ts', 'MAX_SOCKETS_PER_ACCOUNT')
const REQUESTS = constant('src/access/keys/keys.ts', 'DEFAULT_RATE_LIMIT')
const [WINDOW_S = NaN] = find(
  'sql/functions/rate_windows.sql',
  /started_at > now\(\) - interval '(\d+) s'/,
)
const BURST = find('sql/functions/push.sql', /greatest\(0, (\d+) - count[\s\S]*?'(\d+) s'/)
const CALLER = find('src/server/server.ts', /READS_PER_CALLER = \{ perKey: (\d+)/)
const MEMORY = 'src/http/request-memory.ts'
const SEARCH = 'src/log/events/search-query.ts'

/** Sentences with `#` in place of each number, and the numbers of the source. */
test.each<[page: string, sentence: string, numbers: readonly number[]]>([
  ['sending-events', 'A key may make # requests in # seconds', [REQUESTS, WINDOW_S]],
  ['webhooks', 'A project has at most # webhooks', [WEBHOOKS]],
  ['configuration', 'a project has at most #', [WEBHOOKS]],
  ['webhooks', 'Respond with any `2xx` within # seconds', [TIMEOUT_S]],
  ['webhooks', 'or no response in # s', [TIMEOUT_S]],
  ['webhooks', 'About # deliveries can wait', [BACKLOG]],
  ['webhooks', '# failures in a row', [constant(BREAKER, 'FAILURES_TO_PAUSE')]],
  ['webhooks', 'pause a webhook for # seconds', [constant(BREAKER, 'FIRST_PAUSE_MS') / 1_000]],
  ['webhooks', 'the webhook waits # seconds', [constant(BREAKER, 'FIRST_LIMIT_MS') / 1_000]],
  ['webhooks', 'every attempt has failed for # days', [constant(BREAKER, 'DAYS_TO_DISABLE')]],
  [
    'webhooks',
    '`since` may be # days back',
    [constant('src/delivery/webhooks/recovery.ts', 'MAX_DAYS')],
  ],
  ['push', 'after # notifications from one channel in # seconds', BURST],
  [
    'dashboard',
    'A search may have # characters, # terms, and parentheses in # levels',
    [constant(SEARCH, 'MAX_LENGTH'), constant(SEARCH, 'MAX_TERMS'), constant(SEARCH, 'MAX_DEPTH')],
  ],
  ['dashboard', 'You can have # views in a project, and a project can share #', [VIEWS, VIEWS]],
  ['dashboard', 'After # it says', [constant('src/log/views/schema.ts', 'MAX_NEW')]],
  ['dashboard', 'shows up to # cards', [constant('src/log/insights/schema.ts', 'MAX_CARDS')]],
  ['live-feed', 'You have # sockets', [SOCKETS]],
  ['scaling', 'Each process opens up to # connections', [countConnections() + 1]],
  ['configuration', 'pools of up to # connections', [countConnections()]],
])('docs/%s.md: %s', (page, sentence, numbers) => {
  const parts = sentence.split('#').map(part =>
    part
      .split(' ')
      .map(word => RegExp.escape(word))
      .join('\\s+'),
  )
  const pattern = new RegExp(parts.join('([\\d,]+|[A-Za-z]+)'), 'i')
  const [, ...stated] = pattern.exec(readText(`docs/${page}.md`)) ?? []
  expect(stated.map(toNumber)).toEqual([...numbers])
})

test('docs/webhooks.md has the waits between attempts', () => {
  const [, list = ''] =
    /The waits between attempts are ([^.]*)\./.exec(readText('docs/webhooks.md')) ?? []
  const units: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 }
  const waits = [...list.matchAll(/(\d+)\s+(\w+)/g)].map(
    ([, count, unit = '']) => Number(count) * (units[unit] ?? NaN),
  )
  expect([0, ...waits]).toEqual([...WEBHOOK_SCHEDULE_MS])
})

describe('docs/scaling.md', () => {
  const rows = new Map(
    listRows(readSection('docs/scaling.md', 'Limits')).map(([name = '', limit = '']) => [
      name,
      [...limit.matchAll(/\d[\d,]*/g)].map(([text]) => toNumber(text)),
    ]),
  )

  test.each<[resource: string, numbers: readonly number[]]>([
    ['Requests of an API key', [REQUESTS, WINDOW_S]],
    [
      'Organizations of a server',
      [constant('src/access/organizations/organizations.ts', 'MAX_ORGANIZATIONS')],
    ],
    [
      'Projects, members, open invites of an organization',
      [
        constant('src/access/organizations/projects.ts', 'MAX_PROJECTS'),
        constant('src/access/organizations/joining.ts', 'MAX_MEMBERS'),
        constant('src/access/organizations/invites.ts', 'MAX_OPEN'),
      ],
    ],
    [
      'Live API keys, webhooks of a project',
      [constant('src/access/keys/keys.ts', 'MAX_LIVE'), WEBHOOKS],
    ],
    ['Sessions of an account', [constant('src/access/guard/sessions.ts', 'MAX_SESSIONS')]],
    ['Live sockets of an account', [SOCKETS]],
    ['Concurrent requests of an account', CALLER],
    ["Concurrent reads of a project's API keys", CALLER],
    [
      'Requests in progress of an organization or account',
      [...find(MEMORY, /MAX_BYTES_OF_SHARE = (\d+)/), 4, ...find(MEMORY, /MAX_BYTES = (\d+)/), 503],
    ],
    ['Deliveries that wait for one webhook', [BACKLOG]],
    ['Push notifications of a channel to one member', BURST],
  ])('limits: %s', (resource, numbers) => {
    expect(rows.get(resource)).toEqual([...numbers])
  })
})

/** Returns the value of a number that a source names, such as `const MAX = 1_000`. */
function constant(path: string, name: string): number {
  const pattern = new RegExp(`const ${name} = ([\\d_]+)\\n`)
  const [value = NaN] = find(path, pattern)
  return value
}

/** Returns the numbers in the groups of a pattern. Throws if the source has no match. */
function find(path: string, pattern: RegExp): number[] {
  const match = pattern.exec(readText(path))
  if (match === null) throw new Error(`${path} has nothing like ${pattern.source}`)
  const [, ...found] = match
  return found.map(text => Number(text.replaceAll('_', '')))
}

/** Returns the connections of the pools that every process opens: without metrics. */
function countConnections(): number {
  const server = readText('src/server/pools.ts')
  const texts = [server, readText('src/server/deliveries.ts')]
  const pools = texts.flatMap(text => [
    ...text.matchAll(/pools\.open\('(\w+)', (?:isSpread \? \w+ : )?(\w+)(\.max)?/g),
  ])
  return pools
    .filter(([, name = '']) => name !== 'metrics')
    .map(([, , size = '', isObject]) => {
      if (/^\d+$/.test(size)) return Number(size)
      const pattern = isObject ? `${size} = \\{\\s*max: (\\d+)` : `${size} = (\\d+)\\n`
      return find('src/server/pools.ts', new RegExp(pattern))[0] ?? NaN
    })
    .reduce((sum, size) => sum + size, 0)
}

const WORDS = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
]

function toNumber(text: string): number {
  const word = WORDS.indexOf(text.toLowerCase())
  return word < 0 ? Number(text.replaceAll(',', '')) : word
}
