import { Type } from '@sinclair/typebox'
import { expect, test } from 'bun:test'
import { newCall } from '../../src/http/call.ts'
import { createRequestMemory } from '../../src/http/request-memory.ts'
import { readInput } from '../../src/http/route.ts'

const BYTES = 20_000
const CHUNK = 5_000
const BODY = new TextEncoder().encode(JSON.stringify({ name: 'ada' }).padEnd(BYTES))
const LENGTH = String(BYTES)
const REQUEST = 4 * 1024

test.each([
  ['a stranger', 'without a length', undefined, undefined, 0],
  ['a stranger', 'with a length', undefined, LENGTH, 0],
  ['a caller', 'without a length', 'one', undefined, REQUEST + 256 * 1024],
  ['a caller', 'with a length', 'one', LENGTH, REQUEST + BYTES],
])(
  'contract §6 before and after its arrival, a body of %s %s holds its share of memory',
  async (...row) => {
    const [, , caller, length, held] = row
    const memory = createRequestMemory()
    const arriving: number[] = []
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          const start = arriving.length * CHUNK
          if (start === BYTES) return controller.close()
          arriving.push(memory.bytes)
          controller.enqueue(BODY.slice(start, start + CHUNK))
        },
      },
      { highWaterMark: 0 },
    )
    const headers = { ...(length !== undefined && { 'content-length': length }) }
    const request = new Request('http://localhost/', { method: 'POST', body, headers })
    const call = newCall('POST')
    const route = { body: Type.Object({}) }
    await readInput({ request, call, route }, { memory, timeoutMs: 10_000, caller })
    expect(arriving).toEqual(Array(BYTES / CHUNK).fill(held))
    expect(memory.bytes).toBe(REQUEST + BYTES)
    call.release?.()
    expect(memory.bytes).toBe(0)
  },
)
