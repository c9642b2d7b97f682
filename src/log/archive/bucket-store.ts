import { createHash } from 'node:crypto'
import { AwsClient } from 'aws4fetch'
import type { BucketSettings } from '../../base/config/archive.ts'
import { takeStart } from '../../base/cut-text.ts'
import { toReason } from '../../base/errors.ts'
import { pause } from '../../base/functions.ts'
import type { ArchiveObject, ArchiveStore, ArchiveUpload } from './store.ts'

/** S3 accepts 10,000 parts of at least 5 MiB. Later parts are larger, for files of up to 0.4 TB. */
const PART_BYTES = 8 * 1024 * 1024
const PARTS_OF_A_SIZE = 1_000
const REQUEST_TIMEOUT_MS = 120_000
/** The tries of a request, after a lost connection or a temporary response. */
const MAX_TRIES = 4
/** The wait before the second try. Each further one is four times as long. */
const RETRY_MS = 500
const MAX_REASON = 300

interface BucketRequest {
  method?: string
  query?: string
  headers?: Record<string, string>
  body?: Uint8Array | string
}

type Send = (name: string, request: BucketRequest) => Promise<Response>

/** Keeps archive files in a bucket of an S3-compatible server. Addresses contain the bucket. */
export function createBucketStore({
  url,
  retryMs = RETRY_MS,
  ...credentials
}: BucketSettings & { retryMs?: number }): ArchiveStore {
  const client = new AwsClient({ ...credentials, service: 's3', retries: 0 })

  async function trySend(name: string, request: BucketRequest): Promise<Response> {
    const { method = 'GET', query, headers, body } = request
    const path = name.split('/').map(encodeURIComponent).join('/')
    return client.fetch(`${url}/${path}${query === undefined ? '' : `?${query}`}`, {
      method,
      headers: {
        ...headers,
        // The server compares it with what it received.
        'X-Amz-Content-Sha256': createHash('sha256')
          .update(body ?? '')
          .digest('hex'),
      },
      ...(body !== undefined && { body: body as BodyInit }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    })
  }

  /** Sends a request. Resolves to a successful response, or to a 404. */
  async function send(name: string, request: BucketRequest): Promise<Response> {
    for (let tries = 1; ; tries++) {
      const { response, problem, isFinal } = await trySend(name, request).then(
        async response => {
          const { ok, status } = response
          if (ok || status === 404) return { response, problem: '', isFinal: true }
          const problem = `${status} ${takeStart(await response.text(), MAX_REASON)}`
          return {
            response: undefined,
            problem,
            isFinal: status < 500 && ![408, 429].includes(status),
          }
        },
        (error: unknown) => ({ response: undefined, problem: toReason(error), isFinal: false }),
      )
      if (response) return response
      if (isFinal || tries === MAX_TRIES) {
        throw new Error(`The bucket at ${url} refused a request: ${problem}`)
      }
      await pause(retryMs * 4 ** (tries - 1))
    }
  }

  return {
    location: url,
    create: async name => createUpload(send, name),
    open: name => openToRead(send, name),
    async remove(name) {
      await discard(await send(name, { method: 'DELETE' }))
    },
  }
}

/** Uploads a small file in one request, and a large one in parts. Memory holds one part. */
function createUpload(send: Send, name: string): ArchiveUpload {
  let waiting: Uint8Array[] = []
  let bytes = 0
  let uploadId: string | undefined
  const etags: string[] = []

  async function begin(): Promise<string> {
    const text = await toText(await send(name, { method: 'POST', query: 'uploads=' }))
    const [, id] = /<UploadId>([^<]+)<\/UploadId>/.exec(text) ?? []
    if (id === undefined) throw new Error('The bucket began no upload')
    return encodeURIComponent(decodeEntities(id))
  }

  async function sendPart(): Promise<void> {
    uploadId ??= await begin()
    const body = takeWaiting()
    const query = `partNumber=${etags.length + 1}&uploadId=${uploadId}`
    const response = await send(name, { method: 'PUT', query, body })
    const etag = response.headers.get('etag')
    await discard(response)
    if (!response.ok || etag === null) throw new Error('The bucket lost an upload')
    etags.push(etag)
  }

  function takeWaiting(): Uint8Array {
    const body = Buffer.concat(waiting)
    ;[waiting, bytes] = [[], 0]
    return body
  }

  return {
    async write(part) {
      waiting.push(part)
      bytes += part.length
      if (bytes >= PART_BYTES * (1 + Math.floor(etags.length / PARTS_OF_A_SIZE))) await sendPart()
    },
    async finish() {
      if (uploadId === undefined) {
        await toText(await send(name, { method: 'PUT', body: takeWaiting() }))
        return
      }
      if (bytes > 0) await sendPart()
      const parts = etags.map(
        (etag, index) =>
          `<Part><PartNumber>${index + 1}</PartNumber><ETag>${encodeEntities(etag)}</ETag></Part>`,
      )
      const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
      const query = `uploadId=${uploadId}`
      const text = await toText(await send(name, { method: 'POST', query, body }))
      // An error can follow after the status 200.
      if (text.includes('<Error>')) throw new Error(takeStart(text, MAX_REASON))
    },
    async abort() {
      if (uploadId === undefined) return
      await send(name, { method: 'DELETE', query: `uploadId=${uploadId}` }).then(discard, () => {})
    },
  }
}

async function openToRead(send: Send, name: string): Promise<ArchiveObject | undefined> {
  const head = await send(name, { method: 'HEAD' })
  await discard(head)
  if (head.status === 404) return undefined
  return {
    byteLength: Number(head.headers.get('content-length')),
    async read(start, end) {
      if (start === end) return new Uint8Array()
      const headers = { Range: `bytes=${start}-${end - 1}` }
      const response = await send(name, { headers })
      const bytes = new Uint8Array(await response.arrayBuffer())
      if (response.status === 206 && bytes.length === end - start) return bytes
      throw new Error(`The bucket returned ${bytes.length} bytes instead of ${end - start}`)
    },
    close: async () => {},
  }
}

/** Returns the body. Throws if the object, its bucket or its upload does not exist. */
async function toText(response: Response): Promise<string> {
  const text = await response.text()
  if (response.ok) return text
  throw new Error(`The bucket does not exist, or lost an upload: ${takeStart(text, MAX_REASON)}`)
}

/** Reads the rest of a response, so that its connection can be used again. */
async function discard(response: Response): Promise<void> {
  await response.arrayBuffer()
}

function decodeEntities(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}

function encodeEntities(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
