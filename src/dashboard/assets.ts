import { gunzipSync } from 'node:zlib'
import { once } from '../base/functions.ts'
import type { PublicRoute } from '../http/public-route.ts'
import { FILES } from './built.ts'
import { toContentResponse, type Content } from './content.ts'
import type { PackedFile } from './pack.ts'

/** The policy of files that are opened directly: no scripts and no framing. */
export const FILE_POLICY = "default-src 'none'; frame-ancestors 'none'"
const IMMUTABLE = 'public, max-age=31536000, immutable'
const ONE_DAY = 'public, max-age=86400'
/** The service worker may send requests to this server and use its images. */
const WORKER_POLICY = `${FILE_POLICY}; connect-src 'self'; img-src 'self'`

/** Routes for the built files, from memory, except HTML pages, which have other headers. */
export function assetRoutes(): PublicRoute[] {
  const logo = getFile('tidings.svg')
  const worker = getFile('sw.js')
  return [
    ...Object.values(FILES)
      .filter(file => !file.type.startsWith('text/html') && file !== worker)
      .map(file => route(file.url, file, file.url.startsWith('/assets/') ? IMMUTABLE : ONE_DAY)),
    route(worker.url, worker, 'no-cache', WORKER_POLICY),
    // A worker of an earlier build shows notifications with these.
    ...['icon-192.png', 'badge.png'].map(name =>
      route(`/assets/:build/${name}`, getFile(name), ONE_DAY),
    ),
    // Browsers request this path when a page names no icon.
    route('/favicon.ico', logo, ONE_DAY),
  ]
}

/** Returns whether the build has a file. A quick build leaves out the script of /swagger. */
export function hasAsset(name: string): boolean {
  return name in FILES
}

/** The URL of a file in app/, with the hash of its content. */
export function assetUrl(name: string): string {
  return getFile(name).url
}

/** The build of the pages, which is the folder of their files. */
export const BUILD = assetUrl('main.js').split('/').at(-2) ?? ''

/** The content of a file in app/ as it is served. */
export function assetContent(name: string): Content {
  return toServed(getFile(name))
}

function toServed({ type, etag, body, brotli, gzip }: PackedFile): Content {
  return {
    type,
    etag,
    body: body === undefined ? gunzipSync(toBytes(gzip ?? '')) : toBytes(body),
    brotli: brotli === undefined ? undefined : toBytes(brotli),
    gzip: gzip === undefined ? undefined : toBytes(gzip),
  }
}

function route(
  path: string,
  file: PackedFile,
  cacheControl: string,
  policy = FILE_POLICY,
): PublicRoute {
  const getContent = once(() => toServed(file))
  const headers = { 'Cache-Control': cacheControl, 'Content-Security-Policy': policy }
  return { path, respond: request => toContentResponse(request, getContent(), headers) }
}

function getFile(name: string): PackedFile {
  const file = FILES[name]
  if (!file) throw new Error(`There is no file ${name} in src/dashboard/app`)
  return file
}

function toBytes(base64: string) {
  return Buffer.from(base64, 'base64')
}
