import { beforeEach, describe, expect, test } from 'bun:test'
import { listIssues } from '../support/answers.ts'
import { createJsonSender, type JsonSender } from '../support/clients/json.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'
import { measureProcessor } from '../support/processor.ts'

const server = withSharedServer()
let project: TestProject
let send: JsonSender['send']
let sendMetadata: JsonSender['sendMetadata']
let expectKept: JsonSender['expectKept']
beforeEach(async () => {
  project = await newProject(server)
  ;({ send, sendMetadata, expectKept } = createJsonSender(project))
})

/** Expects identify and later reads to return properties as they were sent. */
async function expectIdentified(properties: string): Promise<void> {
  const sent = await send(`{"user_id":"ada","properties":${properties}}`, '/v1/identify')
  expect(sent.status).toBe(200)
  for (const { text } of [sent, await project.get('/v1/users/ada')]) {
    expect(/"properties":(.*),"aliases"/s.exec(text)?.[1]).toBe(properties)
  }
}

describe('contract §2 a number is returned as it was written:', () => {
  test('in any form and of any length', async () => {
    const forms = [
      ...['0', '-0', '-0.0', '0.1', '1.0', '1.10', '-1.500', '100', '1e5', '1E5', '1e+05', '1E-7'],
      ...['0.0000001', '0.00000100', '9007199254740993', '-12345678901234567890'],
      ...['12345678901234567890.5', '3.141592653589793238462643', '1e400', '-1e-400', '1e10000'],
      ...['1e-10000', '9'.repeat(400), `${'9'.repeat(50_000)}e10000`, `0.${'1'.repeat(150_000)}`],
    ]
    const all = `{"a":[${forms.join()}],"b":{"c":[[${forms[0]},1]]}}`
    await expectKept(all)
    await expectIdentified(all)
  })

  test('also in a list, a replay and the tags of /v1/log', async () => {
    const metadata = '{"price":1.10,"id":12345678901234567890,"change":-0,"rate":1E5}'
    const body = `{"channelName":"a","title":"t","metadata":${metadata}}`
    const keyed = { 'content-type': 'application/json', 'idempotency-key': 'one' }
    const first = await project.request('/v1/events', { method: 'POST', body, headers: keyed })
    const again = await project.request('/v1/events', { method: 'POST', body, headers: keyed })
    const list = await project.get('/v1/events')
    for (const { text } of [first, again, list]) expect(text).toContain(`"metadata":${metadata},`)
    expect(again.text).toBe(first.text)
    const log = await send(`{"channel":"a","event":"t","tags":${metadata}}`, '/v1/log')
    expect(log.text).toContain(`"metadata":${metadata},`)
    expect(log.body.data.tags).toEqual([
      'price:1.10',
      'id:12345678901234567890',
      'change:-0',
      'rate:1E5',
    ])
  })

  test('and a different last digit is a different request for the same Idempotency-Key', async () => {
    const post = (id: string) =>
      project.request('/v1/events', {
        method: 'POST',
        body: `{"channelName":"a","title":"t","metadata":{"id":${id}}}`,
        headers: { 'content-type': 'application/json', 'idempotency-key': 'one' },
      })
    expect((await post('12345678901234567890')).status).toBe(201)
    expect((await post('12345678901234567890')).status).toBe(201)
    expect((await post('12345678901234567891')).status).toBe(422)
  })

  test('and our own fields accept every spelling of a number', async () => {
    for (const [timestamp, kept] of [
      ['1.7e9', '2023-11-14T22:13:20.000Z'],
      ['1700000000.0', '2023-11-14T22:13:20.000Z'],
      ['1700000000.50', '2023-11-14T22:13:20.500Z'],
    ]) {
      const sent = await send(`{"channelName":"a","title":"t","timestamp":${timestamp}}`)
      expect([timestamp, sent.body.data?.timestamp]).toEqual([timestamp, kept])
    }
  })

  test('thousands of numbers cost little more than others, and are stored in few bytes', async () => {
    const measure = (one: string, other: string) =>
      measureProcessor(async () => {
        const [few, many] = [6_000, 40_000].map(length => Array.from({ length }, () => one).join())
        await sendMetadata(`{"a":[${few?.replaceAll(one, other)}]}`)
        await sendMetadata(`{"a":[${many}]}`)
        await send(`{"user_id":"ada","properties":{"a":[${many}]}}`, '/v1/identify')
      })
    const control = await measure('12345', '12345678')
    expect((await measure('1e999', '1e131071')) / control).toBeLessThan(20)
    const refused = Array.from({ length: 6_000 }, () => '1e131071').join()
    expect(listIssues(await sendMetadata(`{"a":[${refused}]}`))).toHaveLength(20)
    const kept = Array.from({ length: 40_000 }, () => '1e999').join()
    const { body } = await sendMetadata(`{"a":[${kept}]}`)
    expect((await project.get(`/v1/events/${body.data.id}`)).text.length).toBeLessThan(
      2 * kept.length,
    )
    const number = await send(`{"user_id":"ada","properties":{"a":[${kept}]}}`, '/v1/identify')
    expect(number.status).toBe(200)
  })
})

describe('contract §2 only the body size limits metadata and properties:', () => {
  const ofKeys = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n])))
  const ofBytes = (bytes: number) => JSON.stringify({ a: 'é'.repeat((bytes - 8) / 2) })

  test('many bytes, keys, levels and long keys are kept', async () => {
    for (const json of [
      ofBytes(260_000),
      ofKeys(18_000),
      `{"a":${ofKeys(18_000)}}`,
      JSON.stringify({ ['🚀'.repeat(50_000)]: 1, '': 2 }),
      `${'{"a":'.repeat(62)}{}${'}'.repeat(62)}`,
      `{"a":${'['.repeat(62)}1.10${']'.repeat(62)}}`,
    ]) {
      await expectKept(json)
      await expectIdentified(json)
    }
  })

  test('of duplicate keys the last value is kept, at the place of the first', () =>
    expectKept('{"a":1,"b":2,"a":3.0}', '{"a":3.0,"b":2}'))

  test('white space is not kept', () =>
    expectKept(`{"a":${' '.repeat(100_000)}[ 1.0 , -0\n]}`, '{"a":[1.0,-0]}'))
})
