import { once } from '../../base/functions.ts'
import { MANAGEMENT_OPENAPI_PATH } from '../../http/openapi.ts'
import type { PublicRoute } from '../../http/public-route.ts'
import type { Site } from '../../http/site.ts'
import { assetUrl, FILE_POLICY } from '../assets.ts'
import { toContent, toContentResponse, type Content } from '../content.ts'
import { pageRoute } from '../page.ts'
import type { Document } from './document.ts'
import { markup } from './html.ts'
import { guide, REFERENCE_PATH, renderLayout, toLlmsText, type Layout } from './layout.ts'
import { readDocs, type DocsPage } from './pages.ts'
import { referenceContent, referenceContents } from './reference.ts'
import { listSearchEntries } from './search-entries.ts'

export const HTML = 'text/html; charset=utf-8'
const TEXT = 'text/plain; charset=utf-8'
export const JSON_TYPE = 'application/json; charset=utf-8'
/** The headers of what programs read. */
export const DOCUMENT_HEADERS = {
  'Cache-Control': 'public, max-age=300',
  'Content-Security-Policy': FILE_POLICY,
}

/** Allows our own scripts. They fetch the search index, and a key for a signed-in member. */
const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'"
/** The address that the guides use. The pages of a server show its own. */
const EXAMPLE_URL = 'http://localhost:3000'

interface DocsOptions {
  site: Site
  /** The OpenAPI document of /v1, as `@elysiajs/swagger` makes it. */
  getOpenapi(): Promise<object>
  /** The OpenAPI document of /api. */
  getManagement(): object
}

/** Routes of the OpenAPI documents, the API reference, the guides, their map and search index. */
export function docsRoutes({ site, getOpenapi, getManagement }: DocsOptions): PublicRoute[] {
  const docs = readDocs()
  const getAssets = once(() => ({
    style: assetUrl('docs.css'),
    theme: assetUrl('theme-early.js'),
    script: assetUrl('docs.js'),
    logo: assetUrl('tidings.svg'),
  }))
  const page = (path: string, getLayout: () => LayoutParts | Promise<LayoutParts>): PublicRoute => {
    const getContent = once(async () =>
      toContent(HTML, renderLayout({ docs, path, assets: getAssets(), ...(await getLayout()) })),
    )
    return pageRoute(path, getContent, { site, toPolicy: () => POLICY })
  }
  const file = (path: string, getContent: () => Content | Promise<Content>): PublicRoute => ({
    path,
    respond: async request => toContentResponse(request, await getContent(), DOCUMENT_HEADERS),
  })
  // http/openapi.ts makes both documents, and guarantees their shape.
  const readDocuments = async () => ({
    document: (await getOpenapi()) as Document,
    management: getManagement() as Document,
  })
  const getOpenapiJson = once(async () => toContent(JSON_TYPE, JSON.stringify(await getOpenapi())))
  const getManagementJson = once(() => toContent(JSON_TYPE, JSON.stringify(getManagement())))
  const getSearchJson = once(async () =>
    toContent(JSON_TYPE, JSON.stringify(listSearchEntries({ docs, ...(await readDocuments()) }))),
  )
  const getLlmsText = once(() => toContent(TEXT, toLlmsText(docs, site.url)))
  return [
    file('/openapi.json', getOpenapiJson),
    file('/api/openapi.json', getOpenapiJson),
    file(MANAGEMENT_OPENAPI_PATH, getManagementJson),
    file('/docs/search.json', getSearchJson),
    file('/llms.txt', getLlmsText),
    page('/docs', () => toLayoutParts(docs.index, site)),
    page(REFERENCE_PATH, async () => {
      const { document, management } = await readDocuments()
      return {
        title: 'API reference',
        description: 'Every request that Tidings answers, with its fields and failures.',
        contents: referenceContents(document, management),
        content: referenceContent(document, management),
      }
    }),
    ...docs.pages.map(one => page(`/docs/${one.name}`, () => toLayoutParts(one, site))),
  ]
}

type LayoutParts = Pick<Layout, 'title' | 'description' | 'contents' | 'content'>

function toLayoutParts(page: DocsPage, site: Site): LayoutParts {
  const html = page.html.replaceAll(EXAMPLE_URL, () => markup`${site.url}`.markup)
  return { title: page.title, description: page.lead, content: guide({ ...page, html }) }
}
