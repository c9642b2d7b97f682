import type { OpenRoute } from '../http/open-route.ts'
import { FILES } from './built.ts'
import { toContentResponse, type Content } from './content.ts'
import type { PackedFile } from './pack.ts'

const FOR_EVER = 'public, max-age=31536000, immutable'
const A_DAY = 'public, max-age=86400'

/** The files of the browser, from memory. Pages are not among them: docs.ts fills them first. */
export function assetRoutes(): OpenRoute[] {
  const logo = getFile('tidings.svg')
  return [
    ...Object.values(FILES)
      .filter(({ type }) => !type.startsWith('text/html'))
      .map(file => route(file.url, file, file.url.startsWith('/assets/') ? FOR_EVER : A_DAY)),
    // Browsers ask for this one wherever no page names an icon.
    route('/favicon.ico', logo, A_DAY),
  ]
}

/** The URL of a file in app/, with the hash of its content. */
export function assetUrl(name: string): string {
  return getFile(name).url
}

/** The text of a file in app/, with the URLs of the files that it refers to. */
export function assetText(name: string): string {
  return toBytes(getFile(name).body).toString()
}

function route(path: string, file: PackedFile, cacheControl: string): OpenRoute {
  const content: Content = {
    type: file.type,
    etag: file.etag,
    body: toBytes(file.body),
    brotli: file.brotli === undefined ? undefined : toBytes(file.brotli),
    gzip: file.gzip === undefined ? undefined : toBytes(file.gzip),
  }
  return { path, respond: request => toContentResponse(request, content, cacheControl) }
}

function getFile(name: string): PackedFile {
  const file = FILES[name]
  if (!file) throw new Error(`There is no file ${name} in src/dashboard/app`)
  return file
}

function toBytes(base64: string) {
  return Buffer.from(base64, 'base64')
}
