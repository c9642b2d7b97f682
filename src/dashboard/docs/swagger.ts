import { createHash } from 'node:crypto'
import { Elysia, type AnyElysia } from 'elysia'
import { withCall } from '../../http/call.ts'
import { addRequestId } from '../../http/public-route.ts'
import { SWAGGER_PATH } from '../../http/openapi.ts'
import { checkHost, type Site } from '../../http/site.ts'
import { assetUrl, hasAsset } from '../assets.ts'
import { toContent, toContentResponse, type Content } from '../content.ts'
import { toPageHeaders } from '../page.ts'
import { markup } from './html.ts'
import { DOCUMENT_HEADERS, HTML, JSON_TYPE } from './routes.ts'

/** The plugin passes its settings in the attributes of a script with this content. */
const EMPTY_SCRIPT = createHash('sha256').update('\n    ').digest('base64')

/** Scalar writes styles from script. It sends requests to this server alone. */
const POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${EMPTY_SCRIPT}'`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Serves the page and the document of `@elysiajs/swagger` with our headers. */
export function swaggerRoutes(site: Site, plugin: AnyElysia) {
  const contents = new Map<string, Content>()
  return new Elysia({ name: 'dashboard.swagger' })
    .use(withCall)
    .onBeforeHandle(({ request, route }) => {
      if (route === SWAGGER_PATH) checkHost(request.headers, site)
    })
    .onAfterHandle(async ({ request, route, response }) => {
      const isPage = route === SWAGGER_PATH
      if (isPage && !hasAsset('scalar.js'))
        return new Response(null, { status: 302, headers: { Location: '/docs/api' } })
      const content =
        contents.get(route) ??
        (isPage ? await toPage(response) : toContent(JSON_TYPE, JSON.stringify(response)))
      contents.set(route, content)
      const headers = isPage ? toPageHeaders({ site, toPolicy: () => POLICY }) : DOCUMENT_HEADERS
      return toContentResponse(request, content, headers)
    })
    .onAfterHandle(addRequestId)
    .use(plugin)
}

/** The page of the plugin in our colours. */
async function toPage(response: unknown): Promise<Content> {
  // Hooks of Elysia 1.4.30 get the fixed response of a route as a function that copies it.
  const page = (typeof response === 'function' ? response() : response) as Response
  const links = markup`<link rel="icon" type="image/svg+xml" href="${assetUrl('tidings.svg')}">
<link rel="stylesheet" href="${assetUrl('scalar.css')}">
</head>`
  const html = await page.text()
  return toContent(
    HTML,
    html.replace('<html>', '<html lang="en">').replace('</head>', links.markup),
  )
}
