import { listOperations, toBaseUrl, type Document, type Operation } from './document.ts'
import { collectExamples } from './example.ts'
import { chapterSection, listChapters, type Chapter } from './guide.ts'
import { listManagementTags, MANAGEMENT, managementSection } from './management.ts'
import { anchorLink, operationArticle, schemaArticle } from './operation.ts'
import { markup, prose, toAnchor, type Markup, type Piece } from './html.ts'

/** URLs of the files that the page refers to. */
export interface PageAssets {
  style: string
  script: string
  logo: string
}

interface Group {
  name: string
  anchor: string
  description: string | undefined
  operations: Operation[]
}

/** The tags that are known, in the order in which a newcomer needs them. */
const EMOJI: Record<string, string> = { Events: '🔔', Identities: '👤', Channels: '📣', Keys: '🔑' }

/** The API reference for people as one HTML page that does without script: /v1 in full, and a list of `management`. */
export function renderDocs(document: Document, management: Document, assets: PageAssets): string {
  const examples = collectExamples(document)
  const chapters = listChapters(document, examples)
  const groups = listGroups(document)
  const schemas = Object.keys(document.components?.schemas ?? {})
  const { title, version } = document.info
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="How to send events to ${title}, read them, and tell it who your users are.">
<title>${title} documentation</title>
<link rel="icon" type="image/svg+xml" href="${assets.logo}">
<link rel="stylesheet" href="${assets.style}">
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="/"><img src="${assets.logo}" alt="" width="28" height="28"> ${title}</a>
<span class="version">API ${version}</span>
<a class="to-contents" href="#contents">Contents</a>
<a href="/openapi.json">OpenAPI</a>
</header>
<div class="layout">
${navigation(contents(chapters, groups, schemas, management))}
<main id="content" tabindex="-1">
${hero(document)}
${chapters.map(chapterSection)}
${groups.map(({ name, anchor, description, operations }) => [
  markup`<section id="${anchor}" class="group">
<h2>${groupEmoji(name)} ${name} ${anchorLink(anchor, name)}</h2>
${description !== undefined && prose(description)}
${operations.map(operation => operationArticle(document, examples, operation))}
</section>`,
])}
<section id="schemas" class="group">
<h2><span class="emoji" aria-hidden="true">🧩</span> Schemas ${anchorLink('schemas', 'Schemas')}</h2>
<p>The schemas of requests are those that the server checks them with at run time.</p>
${schemas.map(name => schemaArticle(document, examples, name))}
</section>
${managementSection(management)}
</main>
</div>
</body>
</html>
`
  return page.markup
}

function hero(document: Document): Markup {
  const { title, summary, description = '' } = document.info
  const [lead = ''] = description.split(/\n{2,}/)
  return markup`<div class="hero">
<h1>${summary ?? title}</h1>
<div class="lead">${prose(lead)}</div>
<p class="base"><span>This server</span> <code>${toBaseUrl(document)}</code></p>
</div>`
}

/** Twice, and the style shows one: what is folded on a phone cannot be shown as a column by style alone. */
function navigation(list: Markup): Markup {
  return markup`<nav id="contents" class="contents folded" aria-label="Contents">
<details><summary>Contents</summary>${list}</details>
</nav>
<nav class="contents column" aria-label="Contents">${list}</nav>`
}

function contents(
  chapters: readonly Chapter[],
  groups: readonly Group[],
  schemas: readonly string[],
  management: Document,
): Markup {
  return markup`<p class="contents-title">Guide</p>
<ul>${chapters.map(({ anchor, title }) => item(anchor, title))}</ul>
${groups.map(
  ({
    name,
    anchor,
    operations,
  }) => markup`<p class="contents-title"><a href="#${anchor}">${name}</a></p>
<ul>${operations.map(({ operationId, summary }) => item(toAnchor(operationId), summary))}</ul>`,
)}
<p class="contents-title"><a href="#schemas">Schemas</a></p>
<ul>${schemas.map(name => item(toAnchor('schema', name), name))}</ul>
<p class="contents-title"><a href="#${MANAGEMENT}">Management API</a></p>
<ul>${listManagementTags(management).map(({ anchor, name }) => item(anchor, name))}</ul>`
}

function item(anchor: string, title: string): Markup {
  return markup`<li><a href="#${anchor}">${title}</a></li>`
}

/** Operations by their first tag: the known tags go first, others follow in the order of the document. */
function listGroups(document: Document): Group[] {
  const operations = listOperations(document)
  const names = new Set([
    ...(document.tags ?? []).map(({ name }) => name),
    ...operations.map(toTag),
  ])
  const known = Object.keys(EMOJI).filter(name => names.has(name))
  return [...new Set([...known, ...names])].map(name => ({
    name,
    anchor: toAnchor('tag', name.toLowerCase()),
    description: document.tags?.find(tag => tag.name === name)?.description,
    operations: operations.filter(operation => toTag(operation) === name),
  }))
}

function toTag({ tags }: Operation): string {
  return tags?.[0] ?? 'Other'
}

function groupEmoji(name: string): Piece {
  const emoji = EMOJI[name]
  return emoji && markup`<span class="emoji" aria-hidden="true">${emoji}</span>`
}
