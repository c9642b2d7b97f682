import { MANAGEMENT_OPENAPI_PATH, SWAGGER_PATH } from '../../http/openapi.ts'
import { listGroups, toBaseUrl, type Document, type Operation } from './document.ts'
import { collectExamples } from './example.ts'
import { anchorLink, inline, markup, methodBadge, prose, toAnchor, type Markup } from './html.ts'
import { operationArticle, operationSamples, schemaArticle } from './operation.ts'

/** The anchor of the section about /api. */
const MANAGEMENT = 'management'

/** Every operation and schema of /v1, and a list of those of `management`. */
export function referenceContent(document: Document, management: Document): Markup {
  const reference = collectExamples(document)
  const { description = '', version } = document.info
  const [lead = '', ...rest] = prose(description)
  const groups = listGroups(document, 'tag')
  const first = groups.flatMap(({ operations }) => operations)[0]
  return markup`<h1>API reference</h1>
<div class="lead">${lead}</div>
<p>API ${version} of this server <code>${toBaseUrl(document)}</code></p>
<div class="pair">${first && operationSamples(reference, first)}</div>
${routeTable(groups.flatMap(({ operations }) => operations.map(linkRow)))}
<div class="prose">${rest}</div>
${groups.map(
  ({ name, anchor, description, operations }) => markup`<section id="${anchor}" class="group">
<h2>${name} ${anchorLink(anchor, name)}</h2>
${description !== undefined && prose(description)}
${operations.map(operation => operationArticle(reference, operation))}
</section>`,
)}
<section id="schemas" class="group">
<h2>Schemas ${anchorLink('schemas', 'Schemas')}</h2>
<p>The server checks requests with these schemas.</p>
${listSchemas(document).map(name => schemaArticle(reference, name))}
</section>
${managementSection(management)}`
}

/** Links to everything on the page. */
export function referenceContents(document: Document, management: Document): Markup {
  return markup`<ul>
${listGroups(document, 'tag').map(
  ({ name, anchor, operations }) => markup`<li><a href="#${anchor}">${name}</a>
<ul>${operations.map(({ operationId, summary }) => link(toAnchor(operationId), summary))}</ul></li>`,
)}
<li><a href="#schemas">Schemas</a>
<ul>${listSchemas(document).map(name => link(toAnchor('schema', name), name))}</ul></li>
<li><a href="#${MANAGEMENT}">Management API</a>
<ul>${listGroups(management, MANAGEMENT).map(({ anchor, name }) => link(anchor, name))}</ul></li>
</ul>`
}

/** A line with a link to the description of an operation. */
function linkRow({ operationId, method, path, summary }: Operation): Markup {
  return markup`<tr>
<th scope="row">${methodBadge(method)} <code>${path}</code></th>
<td><a href="#${toAnchor(operationId)}">${summary}</a></td>
</tr>`
}

function link(anchor: string, title: string): Markup {
  return markup`<li><a href="#${anchor}">${title}</a></li>`
}

function listSchemas({ components }: Document): string[] {
  return Object.keys(components?.schemas ?? {})
}

/** Lists every operation of /api in one line. /swagger shows the rest. */
function managementSection(document: Document): Markup {
  const [, signIn = ''] = (document.info.description ?? '').split(/\n{2,}/)
  return markup`<section id="${MANAGEMENT}" class="group">
<h2>Management API ${anchorLink(MANAGEMENT, 'Management API')}</h2>
<p>The dashboard uses this API. Your own scripts can use it, too.</p>
${prose(signIn)}
<p>The <a href="${SWAGGER_PATH}#${MANAGEMENT}">interactive reference</a> shows the fields of every request, and sends
requests from your browser. The OpenAPI document is at <a href="${MANAGEMENT_OPENAPI_PATH}"><code>${MANAGEMENT_OPENAPI_PATH}</code></a>.</p>
${listGroups(document, MANAGEMENT).map(
  ({
    name,
    description,
    anchor,
    operations,
  }) => markup`<h3 id="${anchor}">${name} ${anchorLink(anchor, name)}</h3>
<p>${description}</p>
${routeTable(operations.map(routeRow))}`,
)}
</section>`
}

function routeTable(rows: readonly Markup[]): Markup {
  return markup`<table class="routes">
<thead><tr><th scope="col">Route</th><th scope="col">Description</th></tr></thead>
<tbody>${rows}</tbody>
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
<th scope="row">${methodBadge(method)} <code>${path}</code></th>
<td>${inline(summary)} <span class="hint">Permission: <code>${action}</code></span></td>
</tr>`
}
