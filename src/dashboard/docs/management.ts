import { MANAGEMENT_OPENAPI_PATH, SWAGGER_PATH } from '../../http/openapi.ts'
import { listOperations, type Document, type Operation } from './document.ts'
import { inline, markup, prose, toAnchor, type Markup } from './html.ts'
import { anchorLink } from './sample.ts'

/** The anchor of the whole section. */
export const MANAGEMENT = 'management'

/** Returns the tags of the management document with the anchors of their tables. */
export function listManagementTags({ tags = [] }: Document) {
  return tags.map(({ name, description = '' }) => ({
    name,
    description,
    anchor: toAnchor(MANAGEMENT, name.toLowerCase()),
  }))
}

/** Lists every operation of /api in one line. /swagger shows the rest. */
export function managementSection(document: Document): Markup {
  const [, signIn = ''] = (document.info.description ?? '').split(/\n{2,}/)
  const operations = listOperations(document)
  return markup`<section id="${MANAGEMENT}" class="group">
<h2>Management API ${anchorLink(MANAGEMENT, 'Management API')}</h2>
<p>The dashboard uses this API. Your own scripts can use it, too.</p>
${prose(signIn)}
<p>The <a href="${SWAGGER_PATH}#${MANAGEMENT}">interactive reference</a> shows the fields of every request, and sends
requests from your browser. The OpenAPI document is at <a href="${MANAGEMENT_OPENAPI_PATH}"><code>${MANAGEMENT_OPENAPI_PATH}</code></a>.</p>
${listManagementTags(document).map(
  ({
    name,
    description,
    anchor,
  }) => markup`<h3 id="${anchor}">${name} ${anchorLink(anchor, name)}</h3>
<p>${description}</p>
${routeTable(operations.filter(({ tags }) => tags?.includes(name)))}`,
)}
</section>`
}

function routeTable(operations: readonly Operation[]): Markup {
  return markup`<table class="routes">
<thead><tr><th scope="col">Route</th><th scope="col">Description</th></tr></thead>
<tbody>${operations.map(routeRow)}</tbody>
</table>`
}

function routeRow({
  operationId,
  method,
  path,
  summary,
  'x-action': action = '',
}: Operation): Markup {
  return markup`<tr id="${toAnchor(operationId)}">
<th scope="row"><span class="method method-${method.toLowerCase()}">${method}</span> <code>${path}</code></th>
<td>${inline(summary)} <span class="type">Permission: <code>${action}</code></span></td>
</tr>`
}
