import { markup, type Markup, type Piece } from './html.ts'
import type { BuiltDocs, DocsPage, Heading } from './pages.ts'

/** URLs of the files that every page loads. */
interface PageAssets {
  style: string
  /** Sets the chosen theme before the first paint. */
  theme: string
  script: string
  logo: string
}

export interface Layout {
  docs: BuiltDocs
  assets: PageAssets
  /** The path of the page itself. */
  path: string
  title: string
  /** For search engines and previews. */
  description: string
  /** Links within the page, listed in the navigation below the page's own. */
  contents?: Piece
  content: Piece
}

export const REFERENCE_PATH = '/docs/api'

/** The pages after the guides in the group of this title. */
const REFERENCE = 'Reference'
const REFERENCE_LINKS = [
  [REFERENCE_PATH, 'API reference'],
  ['/swagger', 'Interactive reference'],
  ['/openapi.json', 'OpenAPI document'],
  ['/source', 'Source code'],
] as const

/** A page of the documentation. It can be read without script. */
export function renderLayout(layout: Layout): string {
  const { assets, title, description, content } = layout
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${description}">
<title>${title} · Tidings documentation</title>
<link rel="icon" type="image/svg+xml" href="${assets.logo}">
<link rel="stylesheet" href="${assets.style}">
<script src="${assets.theme}"></script>
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<div class="layout">
<header class="top-bar">
<a href="/docs"><img src="${assets.logo}" alt="" width="28" height="28"> Documentation</a>
<a href="/">Dashboard</a>
</header>
<div id="search" class="search" role="search"></div>
${navigation(layout)}
<main id="content" tabindex="-1">
${content}
</main>
</div>
</body>
</html>
`.markup
}

/** A guide, with its list of headings. */
export function guide({ html, headings }: DocsPage): Markup {
  const list = headings.filter(({ level }) => level <= 3)
  return markup`${list.length > 2 && onThisPage(list)}
<article class="guide">
${{ markup: html }}</article>`
}

function onThisPage(headings: readonly Heading[]): Markup {
  return markup`<nav class="on-this-page" aria-label="On this page">
<details><summary>On this page</summary>
<ul>${headings.map(({ level, id, text }) => markup`<li class="level-${level}"><a href="#${id}">${text}</a></li>`)}</ul>
</details>
</nav>`
}

/** Returns the map of the documentation for programs, as llmstxt.org describes it. */
export function toLlmsText(docs: BuiltDocs, url: string): string {
  const groups = listLinks(docs).map(({ title, links }) => {
    const lines = links.map(
      ([path, text, lead]) => `- [${text}](${url}${path})${lead ? `: ${lead}` : ''}`,
    )
    return [`## ${title}`, ...lines].join('\n')
  })
  return `# Tidings\n\n> ${docs.index.lead}\n\n${groups.join('\n\n')}\n`
}

/** Returns the groups of the documentation, with the path, title and lead of each page. */
function listLinks({ groups, pages }: BuiltDocs) {
  return groups.map(({ title, level, names }) => {
    const guides = names.map(name => {
      const page = pages.find(page => page.name === name)
      return [`/docs/${name}`, page?.title ?? name, page?.lead] as const
    })
    return { title, level, links: title === REFERENCE ? [...guides, ...REFERENCE_LINKS] : guides }
  })
}

/** Folded on a phone, a column beside the page on wide screens. */
function navigation({ docs, path, contents }: Layout): Markup {
  const groups = listLinks(docs).map(({ title, level, links }) => {
    const heading = level === 2 ? markup`<h2>${title}</h2>` : markup`<h3>${title}</h3>`
    return markup`${heading}
<ul>${links.map(([url, text]) => item(url, text, path, contents))}</ul>`
  })
  return markup`<nav class="sidebar" aria-label="Documentation">
<details><summary>All pages</summary>
<ul>${item('/docs', 'Overview', path, contents)}</ul>
${groups}
</details>
</nav>`
}

function item(url: string, title: string, path: string, contents: Piece): Markup {
  return url === path
    ? markup`<li><a href="${url}" aria-current="page">${title}</a>${contents}</li>`
    : markup`<li><a href="${url}">${title}</a></li>`
}
