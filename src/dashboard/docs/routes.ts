import { MANAGEMENT_OPENAPI_PATH } from '../../http/openapi.ts'
import type { PublicRoute } from '../../http/public-route.ts'
import type { Site } from '../../http/site.ts'
import { assetUrl, FILE_POLICY } from '../assets.ts'
import { toContent, toContentResponse, type Content } from '../content.ts'
import { renderDocs } from './page.ts'
import type { Document } from './document.ts'
import { pageRoute } from '../page.ts'
import { once } from '../../functions.ts'

export const HTML = 'text/html; charset=utf-8'
export const JSON_TYPE = 'application/json; charset=utf-8'
/** The headers of an OpenAPI document. */
export const DOCUMENT_HEADERS = {
  'Cache-Control': 'public, max-age=300',
  'Content-Security-Policy': FILE_POLICY,
}

/** A page that needs no script; with it, samples can be copied, and who is signed in gets a key into them. */
const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'"

export interface DocsOptions {
  site: Site
  /** The OpenAPI document of /v1, as `@elysiajs/swagger` makes it. */
  getOpenapi(): Promise<object>
  /** The OpenAPI document of /api. */
  getManagement(): object
}

/** The API descriptions, and the page that is made from them. */
export function docsRoutes({ site, getOpenapi, getManagement }: DocsOptions): PublicRoute[] {
  const getOpenapiJson = once(async () => toContent(JSON_TYPE, JSON.stringify(await getOpenapi())))
  const getManagementJson = once(() => toContent(JSON_TYPE, JSON.stringify(getManagement())))
  const getDocs = once(async () => {
    // Both documents are made by http/openapi.ts, which guarantees their shape.
    const document = (await getOpenapi()) as Document
    const management = getManagement() as Document
    const files = {
      style: assetUrl('docs.css'),
      script: assetUrl('docs.js'),
      logo: assetUrl('tidings.svg'),
    }
    return toContent(HTML, renderDocs(document, management, files))
  })
  const json = (path: string, getContent: () => Content | Promise<Content>): PublicRoute => ({
    path,
    respond: async request => toContentResponse(request, await getContent(), DOCUMENT_HEADERS),
  })
  return [
    json('/openapi.json', getOpenapiJson),
    json('/api/openapi.json', getOpenapiJson),
    json(MANAGEMENT_OPENAPI_PATH, getManagementJson),
    pageRoute('/docs', getDocs, { site, toPolicy: () => POLICY }),
  ]
}
