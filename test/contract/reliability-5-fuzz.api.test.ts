import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventInput, LogInput } from '../../src/log/events/schema.ts'
import { IdentifyInput } from '../../src/log/identities/schema.ts'
import { UUID_V4 } from '../support/answers.ts'
import { withServer } from '../support/servers/server.ts'
import { scaled } from '../support/until.ts'
import { newProject, type RequestOptions } from '../support/worlds/project.ts'

/** Cases per kind. TIDINGS_FUZZ=20000 runs 10^5 cases in all; a failure prints its seed. */
const CASES = Number(process.env['TIDINGS_FUZZ'] ?? 300)
const SEED = Number(process.env['TIDINGS_FUZZ_SEED'] ?? Date.now() % 1_000_000)

const server = withServer()

type Case = [path: string, options: RequestOptions]

const unit = fc.constantFrom(
  ...['\u0000', '\ud800', '🚀', '\u200d', '"', '\\', "'", '{', '}', '%', '\n', ' ', 'a', 'İ', 'ß'],
  ...['\ufeff', '1️⃣', '\u2028', '\u202e', 'e\u0301', '🏴', '\u{e0061}', '&', '/', '?', '#'],
)
const text = fc.oneof(fc.string({ unit, maxLength: 12 }), fc.string())
const time = fc.oneof(
  fc.date({ noInvalidDate: true }).map(date => date.toISOString()),
  fc.constantFrom(
    '0000-01-01',
    '0001-01-01T00:00:00+10:00',
    '9999-12-31T23:59:59-23:59',
    '1800-01-01',
  ),
)
const number = fc.constantFrom(
  '-0',
  '1e400',
  '1e101',
  '1e100',
  '9007199254740993',
  '0.1',
  '-1',
  '1700000000',
  '253402300799',
  '-1e-7',
)
const value = fc.oneof(
  fc.jsonValue().map(json => JSON.stringify(json)),
  fc.oneof(text, time, fc.array(text)).map(json => JSON.stringify(json)),
  number,
)
const field = fc.constantFrom(
  ...Object.keys({ ...EventInput.properties, ...LogInput.properties, ...IdentifyInput.properties }),
  'x',
  ...['__proto__', 'constructor', 'length', 'toString'],
)
const body = fc.array(fc.tuple(field, value), { maxLength: 8 }).map(fields => {
  const valid = '"channelName":"a","title":"t","channel":"a","event":"e","user_id":"u"'
  return `{${[valid, ...fields.map(([name, json]) => `"${name}":${json}`)].join()}}`
})
const route = fc.constantFrom('/v1/events', '/v1/identify', '/v1/log')
const segment = text.map(encode).filter(part => !/^(\.|%2e)*$/i.test(part))
const query = fc
  .array(
    fc.tuple(
      fc.constantFrom(
        'channel',
        'tag',
        'userId',
        'source',
        'text',
        'from',
        'to',
        'after',
        'cursor',
        'limit',
      ),
      fc.oneof(text, time, number, fc.constantFrom('PDQy', "':*", '!!', '& |', '<->')).map(encode),
    ),
    { maxLength: 4 },
  )
  .map(pairs => pairs.map(pair => pair.join('=')).join('&'))

function encode(part: string): string {
  return encodeURIComponent(part.toWellFormed())
}

function post(path: string, sent: string | Uint8Array<ArrayBuffer>, type: string): Case {
  return [path, { method: 'POST', body: sent, headers: { 'content-type': type } }]
}

const KINDS: Record<string, fc.Arbitrary<Case>> = {
  'any values': fc.tuple(route, body).map(([path, json]) => post(path, json, 'application/json')),
  'a changed byte': fc
    .tuple(route, body, fc.nat(), fc.integer({ min: 0, max: 255 }))
    .map(([path, json, place, byte]) => {
      const bytes = new Uint8Array(Buffer.from(json))
      bytes[place % bytes.length] = byte
      return post(path, bytes, 'application/json')
    }),
  'any text': fc
    .tuple(segment, text)
    .map(([name, sent]) => post(`/v1/channels/${name}`, sent.toWellFormed(), 'text/plain')),
  'any query': query.map(pairs => [`/v1/events?${pairs}`, {}]),
  'any parameter': fc
    .tuple(fc.constantFrom('GET', 'DELETE'), fc.constantFrom('users', 'events'), segment)
    .map(([method, kind, part]) => [`/v1/${kind}/${part}`, { method }]),
}

for (const [kind, cases] of Object.entries(KINDS)) {
  test(
    `case 10: ${kind}: every answer has an envelope, and none is a 500`,
    async () => {
      const { request } = await newProject(server)
      const sample = fc.sample(cases, { numRuns: CASES, seed: SEED })
      for (let start = 0; start < sample.length; start += 50) {
        const batch = sample.slice(start, start + 50)
        const answers = await Promise.all(batch.map(([path, options]) => request(path, options)))
        answers.forEach(({ status, body, text, headers }, index) => {
          const sent = { seed: SEED, case: batch[index], text }
          const isKnown = [200, 201, 400, 404, 405].includes(status)
          if (!isKnown || body?.success !== status < 400) throw new Error(JSON.stringify(sent))
          expect(body.requestId).toMatch(UUID_V4)
          expect(headers.get('x-request-id')).toBe(body.requestId)
          if (status !== 400) return
          expect(body.details.length).toBeGreaterThan(0)
          expect(body.details.length).toBeLessThanOrEqual(20)
        })
      }
    },
    scaled(120_000),
  )
}
