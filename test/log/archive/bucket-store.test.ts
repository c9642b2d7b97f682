import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createBucketStore } from '../../../src/log/archive/bucket-store.ts'
import { BUCKET_KEYS, startBucket, type TestBucket } from '../../support/servers/bucket.ts'

const NAME = 'project=prj_1/month=2026-05/events-1.parquet'
const MIB = 1024 * 1024

let bucket: TestBucket
beforeAll(() => {
  bucket = startBucket()
})
beforeEach(() => {
  bucket.objects.clear()
  bucket.uploads.clear()
})
afterAll(() => bucket[Symbol.asyncDispose]())

const open = (more: object = {}) =>
  createBucketStore({ url: bucket.url, region: 'eu-test-1', ...BUCKET_KEYS, retryMs: 1, ...more })

/** Uploads `size` bytes in writes of 3 MiB. */
async function upload(store: ReturnType<typeof open>, size: number): Promise<Buffer> {
  const content = Buffer.alloc(size, 'Tidings ')
  const uploaded = await store.create(NAME)
  for (let at = 0; at < size; at += 3 * MIB)
    await uploaded.write(content.subarray(at, at + 3 * MIB))
  await uploaded.finish()
  return content
}

test('a small file is one request, and can be read in parts and deleted', async () => {
  const store = open()
  bucket.requests.length = 0
  const content = await upload(store, 1_000)
  expect(bucket.requests).toEqual(['PUT'])
  expect([...bucket.objects]).toEqual([[`some prefix/${NAME}`, content]])
  const object = await store.open(NAME)
  expect(object?.byteLength).toBe(1_000)
  expect(await object?.read(10, 30)).toEqual(new Uint8Array(content.subarray(10, 30)))
  await expect(object?.read(990, 1_010)).rejects.toThrow('returned 10 bytes instead of 20')
  await store.remove(NAME)
  expect(await store.open(NAME)).toBeUndefined()
  await store.remove(NAME)
})

test('a large file goes up in parts, also when some requests fail', async () => {
  bucket.failures.push(503, 408)
  const content = await upload(open(), 20 * MIB)
  expect(bucket.objects.get(`some prefix/${NAME}`)?.equals(content)).toBe(true)
  expect(bucket.uploads.size).toBe(0)
})

test('an upload that is aborted leaves nothing', async () => {
  const uploaded = await open().create(NAME)
  await uploaded.write(new Uint8Array(9 * MIB))
  expect(bucket.uploads.size).toBe(1)
  await uploaded.abort()
  expect([bucket.uploads.size, bucket.objects.size]).toEqual([0, 0])
})

test('a bucket that does not exist, wrong keys and lasting failures are errors', async () => {
  const wrong = new URL('/other', bucket.url).href
  await expect(upload(open({ url: wrong }), 10)).rejects.toThrow('NoSuchBucket')
  await expect(upload(open({ secretAccessKey: 'wrong' }), 10)).rejects.toThrow(
    'SignatureDoesNotMatch',
  )
  await expect(open({ secretAccessKey: 'wrong' }).open(NAME)).rejects.toThrow('403')
  bucket.failures.push(503, 503, 503, 503)
  await expect(open().open(NAME)).rejects.toThrow('503')
})
