import { afterAll, beforeAll, test } from 'bun:test'
import fc from 'fast-check'
import { createTester } from './expected.ts'
import { framing } from './framings.ts'
import { checkInLanes, report, TIMEOUT_MS } from './lanes.ts'
import { headEdit, mutation } from './mutations.ts'
import { describe, requestOf, type ApiRequest } from './requests.ts'
import { parse } from './spelling.ts'
import { openWorld, toBody, toBytes, type Lane, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => {
  report(world, 'mutated')
  await world[Symbol.asyncDispose]()
})

const utf8 = new TextDecoder('utf-8', { fatal: true })

test(
  'contract §1, §2 a body of any bytes is refused without effect, or stored with its meaning',
  async () => {
    const posts = world.operations.filter(({ bodies }) => bodies.length > 0)
    const mutated = fc
      .tuple(fc.oneof(...posts.map(requestOf)), mutation)
      .map(([request, change]) => ({
        request,
        body: change.apply(toBody(request) ?? Buffer.alloc(0)),
        [fc.toStringMethod]: () => `${change.name}: ${describe(request)}`,
      }))
    await checkInLanes(world, 0.2, mutated, lane => {
      const tester = createTester(lane)
      return {
        async check({ request, body }) {
          const before = await lane.snapshot()
          const answer = await lane.sendBytes(toBytes(request, lane.project.key, body))
          if (!answer) throw new Error('The server hung up')
          await lane.judge.declared(request.method, request.target, answer)
          if (answer.status >= 400) await expectUnchanged(lane, before)
          else await tester.expectAccepted(toMeant(request, body), answer)
        },
        finish: tester.expectAll,
      }
    })
  },
  TIMEOUT_MS,
)

/** Returns the request that these body bytes mean; throws if they are not text or not JSON. */
function toMeant(request: ApiRequest, bytes: Buffer): ApiRequest {
  const body = utf8.decode(bytes).replace(/^\ufeff+/, '')
  return request.json ? { ...request, body, json: parse(body) } : { ...request, body }
}

test(
  'contract §1 any bytes on a connection get an answer or a hang-up, and refused requests store nothing',
  async () => {
    // An erasure has no body: it may be done before the platform refuses the bytes after its head.
    const operations = world.operations.filter(({ method }) => method !== 'DELETE')
    const framings = fc.tuple(fc.oneof(...operations.map(requestOf)), framing, headEdit)
    const framed = framings.map(([request, frame, edit]) => ({
      request,
      frame,
      edit,
      [fc.toStringMethod]: () => `${frame.name}, ${edit.name}: ${describe(request)}`,
    }))
    await checkInLanes(world, 0.05, framed, lane => ({
      async check({ request, frame, edit }) {
        await lane.fence()
        const before = await lane.snapshot()
        const bytes = toBytes(request, lane.project.key)
        const end = bytes.indexOf('\r\n\r\n') + 4
        const [head, body] = [bytes.subarray(0, end), bytes.subarray(end)]
        const answer = await lane.sendParts(frame.apply(head, body, edit.apply))
        if (answer) lane.judge.anything(answer)
        else if (frame.isWhole) throw new Error('No answer')
        // Text that is cut short is valid text. The platform's answer to the rest may come first.
        const isUnknown = request.id === 'sendText' && !answer?.headers.has('x-request-id')
        if (!isUnknown && !(answer && answer.status < 400)) await expectUnchanged(lane, before)
      },
    }))
  },
  TIMEOUT_MS,
)

async function expectUnchanged(lane: Lane, before: string): Promise<void> {
  const after = await lane.snapshot()
  if (after !== before) throw new Error(`It was stored: ${before} became ${after}`)
}
