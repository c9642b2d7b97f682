import { createHash, createHmac } from 'node:crypto'

export const BUCKET_KEYS = { accessKeyId: 'test-id', secretAccessKey: 'test secret/+' }

/** A bucket of an S3-compatible server that checks signatures and checksums. */
export interface TestBucket extends AsyncDisposable {
  /** With the bucket, and a prefix of all names. */
  url: string
  objects: Map<string, Buffer>
  /** Uploads in parts that are neither complete nor aborted. */
  uploads: Map<string, Buffer[]>
  /** Responds to the next requests with these statuses. */
  failures: number[]
  /** The methods of all requests, in order. */
  requests: string[]
}

/** Starts a bucket on a free port. It accepts Signature Version 4 with BUCKET_KEYS alone. */
export function startBucket(): TestBucket {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Buffer[]>()
  const failures: number[] = []
  const requests: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 64 * 1024 * 1024,
    async fetch(request) {
      requests.push(request.method)
      const body = Buffer.from(await request.arrayBuffer())
      const failure = failures.shift()
      if (failure !== undefined) return toError(failure, 'SlowDown')
      const problem = findSignatureProblem(request, body)
      return problem ? toError(403, problem) : respond(request, body)
    },
  })

  function respond(request: Request, body: Buffer): Response {
    const { pathname, searchParams } = new URL(request.url)
    if (!pathname.startsWith('/bucket/')) return toError(404, 'NoSuchBucket')
    const name = decodeURIComponent(pathname.slice('/bucket/'.length))
    const uploadId = searchParams.get('uploadId')
    if (searchParams.has('uploads')) {
      const id = `id ${uploads.size + 1}/+=`
      uploads.set(id, [])
      return new Response(`<R><UploadId>${id}</UploadId></R>`)
    }
    if (uploadId !== null)
      return respondToUpload(request.method, { name, uploadId, searchParams, body })
    if (request.method === 'PUT') {
      objects.set(name, body)
      return new Response('', { headers: { etag: toEtag(body) } })
    }
    if (request.method === 'DELETE') {
      objects.delete(name)
      return new Response(null, { status: 204 })
    }
    const object = objects.get(name)
    if (!object) return toError(404, 'NoSuchKey')
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get('range') ?? '') ?? []
    if (start === undefined) {
      return new Response(new Uint8Array(object), {
        headers: { 'content-length': String(object.length) },
      })
    }
    return new Response(new Uint8Array(object.subarray(Number(start), Number(end) + 1)), {
      status: 206,
    })
  }

  function respondToUpload(
    method: string,
    {
      name,
      uploadId,
      searchParams,
      body,
    }: {
      name: string
      uploadId: string
      searchParams: URLSearchParams
      body: Buffer
    },
  ): Response {
    const parts = uploads.get(uploadId)
    if (!parts) return toError(404, 'NoSuchUpload')
    if (method === 'PUT') {
      parts[Number(searchParams.get('partNumber')) - 1] = body
      return new Response('', { headers: { etag: toEtag(body) } })
    }
    uploads.delete(uploadId)
    if (method === 'DELETE') return new Response(null, { status: 204 })
    const etags = [...body.toString().matchAll(/<ETag>([^<]*)<\/ETag>/g)].map(([, etag]) => etag)
    if (etags.join() !== parts.map(toEtag).join()) {
      return new Response('<Error><Code>InvalidPart</Code></Error>')
    }
    objects.set(name, Buffer.concat(parts))
    return new Response('<CompleteMultipartUploadResult/>')
  }

  return {
    url: `http://127.0.0.1:${server.port}/bucket/some prefix`.replace(' ', '%20'),
    ...{ objects, uploads, failures, requests },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}

function toEtag(body: Buffer): string {
  return `"${createHash('md5').update(body).digest('hex')}"`
}

function toError(status: number, code: string): Response {
  return new Response(`<Error><Code>${code}</Code></Error>`, { status })
}

/** Checks the signature as the documentation of Signature Version 4 describes it. */
function findSignatureProblem({ method, url, headers }: Request, body: Buffer): string | undefined {
  const { pathname, searchParams } = new URL(url)
  const sha256 = createHash('sha256').update(body).digest('hex')
  if (headers.get('x-amz-content-sha256') !== sha256) return 'XAmzContentSHA256Mismatch'
  const authorization = headers.get('authorization') ?? ''
  const [, scope = '', signed = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=test-id\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(
      authorization,
    ) ?? []
  const [day = '', region = '', service = '', end = ''] = scope.split('/')
  const query = [...searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted()
    .join('&')
  const canonical = [
    method,
    decodeURIComponent(pathname).split('/').map(encode).join('/'),
    query,
    ...signed.split(';').map(name => `${name}:${headers.get(name)}`),
    '',
    signed,
    sha256,
  ].join('\n')
  const hash = createHash('sha256').update(canonical).digest('hex')
  const text = ['AWS4-HMAC-SHA256', headers.get('x-amz-date'), scope, hash].join('\n')
  let key: Buffer = Buffer.from(`AWS4${BUCKET_KEYS.secretAccessKey}`)
  for (const part of [day, region, service, end, text]) {
    key = createHmac('sha256', key).update(part).digest()
  }
  return key.toString('hex') === signature && service === 's3' ? undefined : 'SignatureDoesNotMatch'
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
