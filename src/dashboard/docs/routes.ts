import type { OpenRoute } from '../../http/open-route.ts'
import type { Site } from '../../http/site.ts'
import { assetUrl, FILE_POLICY } from '../assets.ts'
import { toContent, toContentResponse } from '../content.ts'
import { renderDocs } from './page.ts'
import type { Document } from './document.ts'
import { pageRoute } from '../page.ts'
import { once } from '../../once.ts'

const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'

/** A page that needs no script; with it, samples can be copied, and who is signed in gets a key into them. */
const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'"

/** The API description in both spellings of its path, and the page that is made from it. */
export function docsRoutes(
  getDocument: () => Record<string, unknown>,
  getSite: () => Site,
): OpenRoute[] {
  const getJson = once(() => toContent(JSON_TYPE, JSON.stringify(getDocument())))
  const getDocs = once(() =>
    toContent(
      HTML,
      // toDocument guarantees the shape.
      renderDocs(getDocument() as unknown as Document, {
        style: assetUrl('docs.css'),
        script: assetUrl('docs.js'),
        logo: assetUrl('tidings.svg'),
      }),
    ),
  )
  const json = (path: string): OpenRoute => ({
    path,
    respond: request =>
      toContentResponse(request, getJson(), {
        'Cache-Control': 'public, max-age=300',
        'Content-Security-Policy': FILE_POLICY,
      }),
  })
  return [
    json('/openapi.json'),
    json('/api/openapi.json'),
    pageRoute('/docs', getDocs, { getSite, toPolicy: () => POLICY }),
  ]
}
