import { afterAll, beforeAll, test } from 'bun:test'
import fc from 'fast-check'
import { hasNothingToFind, MAX_WORDS, splitWords } from '../../src/base/text-search.ts'
import type { RawAnswer } from '../support/clients/raw-http.ts'
import { createTester } from './expected.ts'
import { checkInLanes, TIMEOUT_MS } from './lanes.ts'
import { mutation } from './mutations.ts'
import {
  brokenRequestsOf,
  describe,
  requestOf,
  type ApiRequest,
  type BrokenRequest,
} from './requests.ts'
import { parse, spell } from './spelling.ts'
import { openWorld, RUNS, SEED, toBody, toBytes, type Lane, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => {
  console.log(`properties: ${world.sent} requests, PROPERTY_SEED=${SEED} PROPERTY_RUNS=${RUNS}`)
  await world[Symbol.asyncDispose]()
})

const utf8 = new TextDecoder('utf-8', { fatal: true })

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

test(
  'contract §1, §2 each rule of the document, broken alone, is a 400 that names the field, and stores nothing',
  async () => {
    // A schema cannot count words, nor fold them. These are rules, too.
    const broken = fc
      .oneof(...world.operations.flatMap(brokenRequestsOf))
      // A schema cannot say that fields stand together.
      .filter(({ id, query }) => id !== 'listThreads' || !query['channel'] === !query['thread'])
      .filter(({ query: { text = 'x' } }) => {
        const words = splitWords(text)
        return words.length <= MAX_WORDS && !words.some(hasNothingToFind)
      })
    await checkInLanes(world, 0.35, broken, lane => {
      let before: string | undefined
      return {
        async check(request) {
          before ??= await lane.snapshot()
          expectNamed(request, await lane.send(request))
          await expectUnchanged(lane, before)
        },
      }
    })
  },
  TIMEOUT_MS,
)

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
          await lane.judge(request.method, request.target, answer)
          if (answer.status >= 400) await expectUnchanged(lane, before)
          else await tester.expectAccepted(toMeant(request, body), answer)
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
  await expectUnchanged(lane, before)
}

/** Expects a 400 with exactly one detail: that of the violated field. */
function expectNamed({ violation }: BrokenRequest, { status, text, body }: RawAnswer): void {
  if (status !== 400) throw new Error(`Answered ${status}: ${text.slice(0, 500)}`)
  const named = body.details.map(({ path, code }: { path: string[]; code: string }) =>
    JSON.stringify([path, code]),
  )
  const expected = JSON.stringify([violation.path, violation.code])
  if (named.join() !== expected) throw new Error(`Expected ${expected}, got ${named.join()}`)
}

/** Returns the request that these body bytes mean; throws if they are not text or not JSON. */
function toMeant(request: ApiRequest, bytes: Buffer): ApiRequest {
  const body = utf8.decode(bytes).replace(/^\ufeff+/, '')
  return request.json ? { ...request, body, json: parse(body) } : { ...request, body }
}

async function expectUnchanged(lane: Lane, before: string): Promise<void> {
  const after = await lane.snapshot()
  if (after !== before) throw new Error(`It was stored: ${before} became ${after}`)
}
