import { listOperations, toBaseUrl, type Document, type Operation } from './document.ts'
import { collectExamples } from './example.ts'
import { markup, prose, toAnchor, type Markup } from './html.ts'
import { listManagementTags, MANAGEMENT, managementSection } from './management.ts'
import { operationArticle, schemaArticle } from './operation.ts'
import { anchorLink } from './sample.ts'

interface Group {
  name: string
  anchor: string
  description: string | undefined
  operations: Operation[]
}

/** Every operation and schema of /v1, and a list of those of `management`. */
export function referenceContent(document: Document, management: Document): Markup {
  const examples = collectExamples(document)
  const { description = '', version } = document.info
  const [lead = '', ...rest] = prose(description)
  return markup`<div class="hero">
<h1>API reference</h1>
<div class="lead">${lead}</div>
<div class="prose">${rest}</div>
<p class="base"><span>API ${version} of this server</span> <code>${toBaseUrl(document)}</code></p>
</div>
${listGroups(document).map(
  ({ name, anchor, description, operations }) => markup`<section id="${anchor}" class="group">
<h2>${name} ${anchorLink(anchor, name)}</h2>
${description !== undefined && prose(description)}
${operations.map(operation => operationArticle(document, examples, operation))}
</section>`,
)}
<section id="schemas" class="group">
<h2>Schemas ${anchorLink('schemas', 'Schemas')}</h2>
<p>The server checks requests with these schemas.</p>
${listSchemas(document).map(name => schemaArticle(document, examples, name))}
</section>
${managementSection(management)}`
}

/** Links to everything on the page. */
export function referenceContents(document: Document, management: Document): Markup {
  return markup`<ul>
${listGroups(document).map(
  ({ name, anchor, operations }) => markup`<li><a href="#${anchor}">${name}</a>
<ul>${operations.map(({ operationId, summary }) => link(toAnchor(operationId), summary))}</ul></li>`,
)}
<li><a href="#schemas">Schemas</a>
<ul>${listSchemas(document).map(name => link(toAnchor('schema', name), name))}</ul></li>
<li><a href="#${MANAGEMENT}">Management API</a>
<ul>${listManagementTags(management).map(({ anchor, name }) => link(anchor, name))}</ul></li>
</ul>`
}

function link(anchor: string, title: string): Markup {
  return markup`<li><a href="#${anchor}">${title}</a></li>`
}

function listSchemas({ components }: Document): string[] {
  return Object.keys(components?.schemas ?? {})
}

/** Operations by their first tag, in the order of the document's tags. */
function listGroups(document: Document): Group[] {
  const operations = listOperations(document)
  const tags = document.tags ?? []
  const names = new Set([...tags.map(({ name }) => name), ...operations.map(toTag)])
  return [...names].map(name => ({
    name,
    anchor: toAnchor('tag', name.toLowerCase()),
    description: tags.find(tag => tag.name === name)?.description,
    operations: operations.filter(operation => toTag(operation) === name),
  }))
}

function toTag({ tags }: Operation): string {
  return tags?.[0] ?? 'Other'
}
