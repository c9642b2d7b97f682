import { expect, test } from 'bun:test'
import { readJson } from '../../src/http/body.ts'

const LARGE = 30_000
const LARGE_OF_STRANGER = 4_000

/** Reads a body with so many numbers. */
function read(caller: string | undefined, values: number, signal?: AbortSignal) {
  const body = JSON.stringify({ values: Array.from({ length: values }, (_, n) => n + 0.5) })
  const request = new Request('http://localhost', { method: 'POST', body, signal: signal ?? null })
  return readJson(request, { timeoutMs: 10_000, caller })
}

test.each([
  ['a caller', 'one', LARGE],
  ['strangers', undefined, LARGE_OF_STRANGER],
])(
  'large bodies of %s are parsed one at a time, and small ones do not wait for them',
  async (_, caller, values) => {
    const order: string[] = []
    const readAs = async (name: string, count: number) => {
      await read(caller, count)
      order.push(name)
    }
    const large = ['first', 'second', 'third'].map(name => readAs(name, values))
    await Promise.race(large)
    await readAs('small', 1)
    await Promise.all(large)
    expect(order).toEqual(['first', 'small', 'second', 'third'])
  },
)

test('a caller with many large bodies does not hold up those of others', async () => {
  const order: string[] = []
  const readOf = async (caller: string) => {
    await read(caller, LARGE)
    order.push(caller)
  }
  const many = Array.from({ length: 5 }, () => readOf('many'))
  await Promise.all([...many, readOf('few')])
  expect(order.slice(0, 2)).toEqual(['many', 'few'])
})

test('a large body whose client leaves is not parsed', async () => {
  const leaving = new AbortController()
  const reads = Array.from({ length: 40 }, () => read('waiting', LARGE, leaving.signal))
  const settled = Promise.allSettled(reads)
  await reads[0]
  await read('another', LARGE)
  leaving.abort()
  const results = await settled
  const refused = results.filter(({ status }) => status === 'rejected')
  expect(refused.length).toBeGreaterThan(30)
  for (const { reason } of refused as PromiseRejectedResult[])
    expect(reason).toMatchObject({ code: 'unavailable' })
})
