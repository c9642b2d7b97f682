import { expect, test } from 'bun:test'
import { readJson } from '../../src/http/body.ts'

test('large bodies are parsed one at a time, and small ones do not wait for them', async () => {
  const order: string[] = []
  const read = async (name: string, values: number) => {
    const body = JSON.stringify({ values: Array.from({ length: values }, (_, n) => n + 0.5) })
    const request = new Request('http://localhost', { method: 'POST', body })
    await readJson(request, { timeoutMs: 10_000 })
    order.push(name)
  }
  const large = ['first', 'second', 'third'].map(name => read(name, 30_000))
  await Promise.race(large)
  await read('small', 1)
  await Promise.all(large)
  expect(order).toEqual(['first', 'small', 'second', 'third'])
})
