import { afterAll, beforeAll, test } from 'bun:test'
import fc from 'fast-check'
import { hasNothingToFind, MAX_WORDS, splitWords } from '../../src/base/text-search.ts'
import { checkInLanes, report, TIMEOUT_MS } from './lanes.ts'
import type { RawAnswer } from '../support/clients/raw-http.ts'
import { brokenRequestsOf, type BrokenRequest } from './requests.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => {
  report(world, 'breaking a rule')
  await world[Symbol.asyncDispose]()
})

test(
  'contract §1, §2 each rule of the document, broken alone, is a 400 that names the field, and stores nothing',
  async () => {
    // A schema cannot count words, nor fold them. These are rules, too.
    const broken = fc
      .oneof(...world.operations.flatMap(brokenRequestsOf))
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
          const after = await lane.snapshot()
          if (after !== before) throw new Error(`It was stored: ${before} became ${after}`)
        },
      }
    })
  },
  TIMEOUT_MS,
)

/** Expects a 400 with exactly one detail: that of the violated field. */
function expectNamed({ violation }: BrokenRequest, { status, text, body }: RawAnswer): void {
  if (status !== 400) throw new Error(`Answered ${status}: ${text.slice(0, 500)}`)
  const named = body.details.map(({ path, code }: { path: string[]; code: string }) =>
    JSON.stringify([path, code]),
  )
  const expected = JSON.stringify([violation.path, violation.code])
  if (named.join() !== expected) throw new Error(`Expected ${expected}, got ${named.join()}`)
}
