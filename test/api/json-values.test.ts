import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
import { createJsonSender, type JsonSender } from '../support/json.ts'
import { newProject, type TestProject } from '../support/project.ts'
import { boot, type Booted } from '../support/server.ts'

let server: Booted
let project: TestProject
let send: JsonSender['send']
let sendMetadata: JsonSender['sendMetadata']
let expectKept: JsonSender['expectKept']
beforeAll(async () => {
  server = await boot()
})
beforeEach(async () => {
  project = await newProject(server)
  ;({ send, sendMetadata, expectKept } = createJsonSender(project))
})
afterAll(() => server[Symbol.asyncDispose]())

/** Ten times what an answer may take here; it guards against a hang, not against a slow machine. */
const SOON_MS = 2_000

async function countEvents(): Promise<number> {
  return (await project.get('/v1/events')).body.data.items.length
}

describe('case 5: a number is kept exactly or refused:', () => {
  for (const [number, kept] of [
    ['0', '0'],
    ['-0', '-0'],
    ['-0.0', '-0'],
    ['1e100', '1e+100'],
    ['-1e100', '-1e+100'],
    ['1E2', '100'],
    ['9007199254740991', '9007199254740991'],
    ['-9007199254740991', '-9007199254740991'],
    ['0.1', '0.1'],
    ['1.10', '1.1'],
    ['3.141592653589793238462643', '3.141592653589793'],
    ['12345678901234567890.5', '1.2345678901234567e+19'],
    ['1e-400', '0'],
    ['5e-324', '5e-324'],
  ] as const) {
    test(`${number} -> ${kept}`, () =>
      expectKept(`{"a":${number},"b":[${number}]}`, `{"a":${kept},"b":[${kept}]}`))
  }

  test.each([
    '9007199254740992',
    '-9007199254740992',
    '9007199254740993',
    '12345678901234567890',
    '1e101',
    '-1e101',
    '1e308',
    '1e400',
    '-1e400',
    '1e131071',
    '9'.repeat(400),
  ])('%s is out of range', async number => {
    expect(listIssues(await sendMetadata(`{"a":${number},"b":[1,${number}]}`))).toEqual([
      'metadata.a out_of_range',
      'metadata.b.1 out_of_range',
    ])
  })

  test('thousands of huge ones are refused soon, and what is kept does not swell', async () => {
    const started = performance.now()
    for (const number of ['1e131071', '1e308']) {
      const list = Array.from({ length: 6_000 }, () => number).join()
      expect(listIssues(await sendMetadata(`{"a":[${list}]}`))).toHaveLength(20)
    }
    const list = Array.from({ length: 6_000 }, () => '1e100').join()
    const { body } = await sendMetadata(`{"a":[${list}]}`)
    expect((await project.get(`/v1/events/${body.data.id}`)).text.length).toBeLessThan(
      2 * list.length,
    )
    expect(performance.now() - started).toBeLessThan(SOON_MS * 3)
  })
})

describe('case 6: U+0000 and halves of surrogate pairs are a 400 that names the path:', () => {
  for (const bad of ['\\u0000', '\\ud800', '\\udc00', '\\udc00\\ud800', 'a\\u0000b', '\\ud83d ']) {
    test(bad, async () => {
      const text = `"x${bad}"`
      for (const field of [
        'channelName',
        'title',
        'description',
        'icon',
        'source',
        'userId',
        'timestamp',
        'unknown',
      ]) {
        const others = Object.entries({ channelName: '"a"', title: '"t"', [field]: text })
        const body = `{${others.map(([name, json]) => `"${name}":${json}`).join()}}`
        expectIssues(await send(body), `${field} invalid_encoding`)
      }
      expectIssues(
        await send(`{"channelName":"a","title":"t","tags":["a",${text}]}`),
        'tags.1 invalid_encoding',
      )
      expectIssues(
        await sendMetadata(`{"a":{"b":["c",${text}]}}`),
        'metadata.a.b.1 invalid_encoding',
      )
      for (const [body, path] of [
        [`{"user_id":${text}}`, 'user_id'],
        [`{"user_id":"a","aliases":["b",${text}]}`, 'aliases.1'],
        [`{"user_id":"a","properties":{"b":${text}}}`, 'properties.b'],
      ] as const) {
        expectIssues(await send(body, '/v1/identify'), `${path} invalid_encoding`)
      }
      for (const json of [`{${text}:1}`, `{"a":[{${text}:{}}]}`]) {
        expect(listIssues(await sendMetadata(json))[0]).toMatch(
          /^metadata\..*\ufffd.* invalid_encoding$/,
        )
      }
      expect(listIssues(await send(`{"channelName":"a","title":"t",${text}:1}`))[0]).toEndWith(
        ' invalid_encoding',
      )
      expect(await countEvents()).toBe(0)
    })
  }

  test('whole pairs and other escapes are text', async () => {
    await expectKept(
      '{"a":"\\ud83d\\ude80\\u0001\\u2028\\ufffe"}',
      JSON.stringify({ a: '🚀\u0001\u2028\ufffe' }),
    )
  })
})

describe('contract §2 metadata and properties are bounded:', () => {
  const ofBytes = (bytes: number) => JSON.stringify({ a: 'é'.repeat((bytes - 8) / 2) })
  const ofKeys = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n])))

  test('to 64 KiB of text, counted in bytes and without white space', async () => {
    await expectKept(ofBytes(65_534))
    await expectKept(ofBytes(65_536))
    expect(listIssues(await sendMetadata(ofBytes(65_538)))).toEqual(['metadata too_long'])
    await expectKept(`{"a":${' '.repeat(100_000)}1}`, '{"a":1}')
  })

  test('to 1,000 keys an object', async () => {
    await expectKept(ofKeys(1_000))
    expect(listIssues(await sendMetadata(ofKeys(1_001)))).toEqual(['metadata too_many'])
    expect(listIssues(await sendMetadata(`{"a":[${ofKeys(1_001)}]}`))).toEqual([
      'metadata.a.0 too_many',
    ])
  })

  test('to keys of 256 characters', async () => {
    await expectKept(JSON.stringify({ ['🚀'.repeat(256)]: 1, '': 2 }))
    expect(listIssues(await sendMetadata(JSON.stringify({ ['🚀'.repeat(257)]: 1 })))).toEqual([
      `metadata.${'🚀'.repeat(20)} too_long`,
    ])
  })

  test('of keys that are given twice the last one stays', () =>
    expectKept('{"a":1,"a":2}', '{"a":2}'))
})

test('case 5: what is answered for a large number can be sent again', async () => {
  const answered = await sendMetadata('{"a":1e20,"b":12345678901234567890.5,"c":1e22,"d":1.5e3}')
  const { text } = await project.get(`/v1/events/${answered.body.data.id}`)
  const metadata = /"metadata":(\{[^}]*\})/.exec(text)?.[1] ?? ''
  expect(metadata).toBe('{"a":1e+20,"b":1.2345678901234567e+19,"c":1e+22,"d":1500}')
  expect((await sendMetadata(metadata)).status).toBe(201)
})
