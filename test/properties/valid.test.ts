import { afterAll, beforeAll, test } from 'bun:test'
import fc from 'fast-check'
import { createTester } from './expected.ts'
import { checkInLanes, report, TIMEOUT_MS } from './lanes.ts'
import { requestOf, type ApiRequest } from './requests.ts'
import { spell } from './spelling.ts'
import { openWorld, type Lane, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => {
  report(world, 'valid')
  await world[Symbol.asyncDispose]()
})

test(
  'contract §1, §8 requests that the document allows are accepted, stored and read back unchanged',
  async () => {
    const requests = fc.oneof(
      ...world.operations.map(operation => ({
        weight: operation.method === 'POST' || operation.id === 'listEvents' ? 4 : 1,
        arbitrary: requestOf(operation),
      })),
    )
    await checkInLanes(world, 0.3, requests, lane => {
      const tester = createTester(lane)
      return {
        async check(generated) {
          const request = tester.aim(generated)
          const answer = await lane.send(request)
          await tester.expectAccepted(request, answer)
          const isKeyed = request.headers.some(([name]) => name === 'Idempotency-Key')
          if (isKeyed && request.method === 'POST' && answer.status < 300) {
            if (request.choice % 3 === 0)
              await tester.expectAccepted(request, await lane.send(request))
            if (request.choice % 5 === 0) await expectReused(lane, request)
          }
        },
        finish: tester.expectAll,
      }
    })
  },
  TIMEOUT_MS,
)

/** Changes a required field. Unknown fields make no difference. */
function changeField(json: Record<string, unknown>): Record<string, unknown> {
  const field = ['user_id', 'channelName', 'channel'].find(name => name in json) ?? ''
  return { ...json, [field]: json[field] === 'a' ? 'b' : 'a' }
}

/** §5: the same key with another request is refused, and has no effect. */
async function expectReused(lane: Lane, request: ApiRequest): Promise<void> {
  const before = await lane.snapshot()
  const body = request.json ? spell(changeField(request.json)) : `${request.body} more`
  const answer = await lane.send({ ...request, body })
  if (answer.status !== 422) throw new Error(`A key with another request answered ${answer.status}`)
  if ((await lane.snapshot()) !== before) throw new Error('A refused request changed something')
}
