import type { OpenRoute } from '../http/open-route.ts'
import { assetText, assetUrl } from './assets.ts'
import { toContent, toContentResponse, type Content } from './content.ts'
import { renderDocs } from './docs-page.ts'
import { toBaseUrl, type Document } from './document.ts'
import { markup } from './html.ts'
import { once } from '../once.ts'

const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'
const YEAR_S = 31_536_000

/** The API description in both spellings of its path, and the pages that are made from it: `/docs` and `/`. */
export function docsRoutes(getDocument: () => Record<string, unknown>): OpenRoute[] {
  // toDocument guarantees the shape.
  const getTyped = () => getDocument() as unknown as Document
  const getJson = once(() => toContent(JSON_TYPE, JSON.stringify(getDocument())))
  const getDocs = once(() =>
    toContent(
      HTML,
      renderDocs(getTyped(), { style: assetUrl('docs.css'), logo: assetUrl('tidings.svg') }),
    ),
  )
  const getHome = once(() =>
    toContent(HTML, renderHome(assetText('index.html'), toBaseUrl(getTyped()))),
  )

  const json = (path: string): OpenRoute => ({
    path,
    respond: request => toContentResponse(request, getJson(), 'public, max-age=300'),
  })
  const page = (path: string, getContent: () => Content): OpenRoute => ({
    path,
    respond(request) {
      const response = toContentResponse(request, getContent(), 'no-cache')
      if (toBaseUrl(getTyped()).startsWith('https:')) {
        response.headers.set('Strict-Transport-Security', `max-age=${YEAR_S}`)
      }
      return response
    },
  })
  return [
    json('/openapi.json'),
    json('/api/openapi.json'),
    page('/docs', getDocs),
    page('/', getHome),
  ]
}

/** Puts the server's own URL where the page has `{{server}}`. */
export function renderHome(template: string, baseUrl: string): string {
  return template.replaceAll('{{server}}', () => markup`${baseUrl}`.markup)
}
