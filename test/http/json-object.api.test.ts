import { beforeEach, describe, expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
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

async function countEvents(): Promise<number> {
  return (await project.get('/v1/events')).body.data.items.length
}

test('§7 a body that is no JSON object is a 400 for the whole body', async () => {
  for (const body of [
    '',
    ' ',
    '{',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    '{"a":1}}',
    'NaN',
    '{"a":NaN}',
    '{"a":01}',
    '{"a":"\n"}',
    '\u0000',
  ]) {
    expectIssues(await send(body), ' invalid_json')
  }
  for (const body of ['null', '1', '-0', '"{}"', '[]', '[{}]', 'true']) {
    expectIssues(await send(body), ' invalid_type')
  }
  expect(await countEvents()).toBe(0)
})

test('case 3: __proto__ and constructor are ordinary keys, stored and without effect', async () => {
  await expectKept('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
  await expectKept('{"toString":1,"hasOwnProperty":{"__proto__":null},"a":[{"__proto__":[]}]}')
  const answer = await send(
    '{"channelName":"a","title":"t","__proto__":{"icon":"x","polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  )
  expect(answer.status).toBe(201)
  expect(answer.body.data.icon).toBeNull()
  // Missing fields are not looked up in the prototype.
  expect(listIssues(await send('{"__proto__":{"channelName":"a","title":"t"}}'))).toEqual([
    'channelName required',
    'title required',
  ])
  expect(listIssues(await send('{"__proto__":{"user_id":"a"}}', '/v1/identify'))).toEqual([
    'user_id required',
  ])
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  const properties = '{"__proto__":{"a":1},"constructor":2}'
  const identified = await send(`{"user_id":"proto","properties":${properties}}`, '/v1/identify')
  expect(identified.text).toContain(`"properties":${properties}`)
  expect((await project.get('/v1/users/proto')).text).toContain(`"properties":${properties}`)
})

describe('case 4: depth is limited:', () => {
  const objects = (levels: number) => '{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1)
  const arrays = (levels: number) => `{"a":${'['.repeat(levels - 1)}-0${']'.repeat(levels - 1)}}`

  test('deeper bodies are refused as a whole', async () => {
    expectIssues(await sendMetadata(objects(64)), ' too_deep')
    expectIssues(await sendMetadata(arrays(64)), ' too_deep')
  })

  test('100,000 levels in 250 KB are refused at little cost, in every place', async () => {
    const depth = 100_000
    let [control, hostile] = [0, 0]
    for (const json of [
      '['.repeat(depth) + ']'.repeat(depth),
      '['.repeat(250_000),
      '{"a":'.repeat(50_000),
    ]) {
      for (const body of [
        json,
        `{"metadata":${json}}`,
        `{"channelName":"a","title":"t","other":${json}}`,
      ]) {
        const cut = body.slice(0, 256 * 1024)
        control += await measureProcessor(() => send(JSON.stringify(cut.replaceAll('"', ''))))
        hostile += await measureProcessor(async () => expectIssues(await send(cut), ' too_deep'))
      }
    }
    expect(hostile / control).toBeLessThan(20)
  })

  test('brackets in strings are not counted', async () => {
    await expectKept(JSON.stringify({ a: '['.repeat(1_000), 'b"{[': '\\"[[{{'.repeat(50) }))
  })
})
