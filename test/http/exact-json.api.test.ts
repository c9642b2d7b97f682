import { beforeEach, describe, expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'
import { measureProcessor } from '../support/processor.ts'

const server = withSharedServer()
let project: TestProject
beforeEach(async () => {
  project = await newProject(server)
})

/** Posts `body` as JSON, word for word. */
function send(body: string, path = '/v1/events', more: Record<string, string> = {}) {
  const headers = { 'content-type': 'application/json', ...more }
  return project.request(path, { method: 'POST', body, headers })
}

/** Posts an event with `json` as its metadata. */
const sendMetadata = (json: string, headers = {}) =>
  send(`{"channelName":"a","title":"t","metadata":${json}}`, '/v1/events', headers)

/** Expects metadata sent as `sent` to be returned as `json`, on creation and on reading. */
async function expectKept(sent: string, json = sent): Promise<void> {
  const answer = await sendMetadata(sent)
  expect([sent, answer.status]).toEqual([sent, 201])
  for (const { text } of [answer, await project.get(`/v1/events/${answer.body.data.id}`)])
    expect(/"metadata":(.*),"source"/s.exec(text)?.[1]).toBe(json)
}

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
    const keyed = { 'idempotency-key': 'one' }
    const first = await sendMetadata(metadata, keyed)
    const again = await sendMetadata(metadata, keyed)
    const list = await project.get('/v1/events')
    for (const { text } of [first, again, list]) expect(text).toContain(`"metadata":${metadata},`)
    expect(again.text).toBe(first.text)
    // A different last digit is a different request.
    expect((await sendMetadata(metadata.replace('890', '891'), keyed)).status).toBe(422)
    const { data } = (await send(`{"channel":"a","event":"t","tags":${metadata}}`, '/v1/log')).body
    expect(data.tags).toEqual(['price:1.10', 'id:12345678901234567890', 'change:-0', 'rate:1E5'])
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

test('§7 a body that is JSON and no object is refused as a whole', async () => {
  for (const body of ['null', '1', '-0', '"{}"', '[]', '[{}]', 'true'])
    expectIssues(await send(body), ' invalid_type')
})

test('case 3: __proto__ and constructor are ordinary keys, stored and without effect', async () => {
  const json = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'
  await expectKept(json)
  await expectIdentified(json)
  // Missing fields are not looked up in the prototype.
  const inherited = await send('{"__proto__":{"channelName":"a","title":"t"}}')
  expectIssues(inherited, 'channelName required', 'title required')
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
})

describe('case 4: depth is limited:', () => {
  const objects = (levels: number) => '{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1)
  const arrays = (levels: number) => `{"a":${'['.repeat(levels - 1)}-0${']'.repeat(levels - 1)}}`

  test('deeper bodies are refused as a whole', async () => {
    expectIssues(await sendMetadata(objects(64)), ' too_deep')
    expectIssues(await sendMetadata(arrays(64)), ' too_deep')
  })

  test('100,000 levels in 250 KB are refused at little cost, in every place', async () => {
    let [control, hostile] = [0, 0]
    for (const body of [
      '['.repeat(100_000) + ']'.repeat(100_000),
      `{"metadata":${'['.repeat(250_000)}}`,
      `{"channelName":"a","title":"t","other":${'{"a":'.repeat(50_000)}}`,
    ]) {
      const cut = body.slice(0, 256 * 1024)
      control += await measureProcessor(() => send(JSON.stringify(cut.replaceAll('"', ''))))
      hostile += await measureProcessor(async () => expectIssues(await send(cut), ' too_deep'))
    }
    expect(hostile / control).toBeLessThan(20)
  })

  test('brackets in strings are not counted', async () => {
    await expectKept(JSON.stringify({ a: '['.repeat(1_000), 'b"{[': '\\"[[{{'.repeat(50) }))
  })
})
