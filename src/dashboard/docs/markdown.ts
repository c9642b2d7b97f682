import { Marked, type Tokens } from 'marked'
import { anchorLink, markup, sample } from './html.ts'
import type { DocsPage, Heading, PageGroup, Section } from './pages.ts'

export interface MarkdownFile {
  /** The file without `.md`. */
  name: string
  text: string
}

/** An image of docs/, with its size in pixels. */
interface Image {
  url: string
  width: number
  height: number
}

export interface RenderOptions {
  /** Returns an image; undefined if docs/ does not have it. */
  findImage(file: string): Image | undefined
}

const INDEX = 'README'
/** Paths of the server that a code host cannot link to. Pages name them as code. */
const SERVER_PATHS = new Set(['/docs/api', '/swagger', '/openapi.json', '/api/management.json'])
const LANGUAGES: Record<string, string> = {
  sh: 'Shell',
  ts: 'TypeScript',
  js: 'JavaScript',
  python: 'Python',
  go: 'Go',
  ruby: 'Ruby',
  php: 'PHP',
  json: 'JSON',
  http: 'HTTP',
  yaml: 'YAML',
  ini: 'INI',
  nginx: 'nginx',
  sql: 'SQL',
  mermaid: 'Diagram, in Mermaid',
}

/** Renders a file of docs/ as a page. Throws when the file has no title. */
export function renderMarkdown(file: MarkdownFile, options: RenderOptions): DocsPage {
  const headings: Heading[] = []
  const html = createRenderer(file, headings, options).parse(file.text, { async: false })
  const [title] = headings
  if (title?.level !== 1) throw new Error(`docs/${file.name}.md must begin with a title`)
  return {
    name: file.name === INDEX ? '' : file.name,
    title: title.text,
    lead: toText(/<p>([\s\S]*?)<\/p>/.exec(html)?.[1] ?? ''),
    html,
    headings: headings.slice(1),
    sections: toSections(html, headings),
  }
}

/** The groups of docs/README.md: each heading, with the pages that the list below it links to. */
export function listGroups(index: DocsPage): PageGroup[] {
  return splitAtHeadings(index.html).flatMap(part => {
    const [, level, title] = /^<h([23]) id="[^"]*">(.*?) <a class="anchor"/.exec(part) ?? []
    if (title === undefined) return []
    const names = [...part.matchAll(/<li>\s*<a href="\/docs\/([\w-]+)">/g)].map(
      ([, name = '']) => name,
    )
    return { title: toText(title), level: Number(level), names }
  })
}

function createRenderer({ name }: MarkdownFile, headings: Heading[], options: RenderOptions) {
  const ids = new Map<string, number>()
  function toId(text: string): string {
    const slug = toSlug(text)
    const count = ids.get(slug) ?? 0
    ids.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
  return new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const text = toText(html)
        const id = toId(text)
        headings.push({ level: depth, id, text })
        const link = depth === 1 ? '' : ` ${anchorLink(id, text).markup}`
        return `<h${depth} id="${id}">${html}${link}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const html = this.parser.parseInline(tokens)
        const url = toUrl(href)
        return url === undefined ? html : `<a href="${escape(url)}">${html}</a>`
      },
      image({ href, text }) {
        const image = options.findImage(href)
        if (!image) throw new Error(`There is no image ${href} in docs`)
        const { url, width, height } = image
        const dark = options.findImage(href.replace('.', '-dark.'))
        const source =
          dark && markup`<source srcset="${dark.url}" media="(prefers-color-scheme: dark)">`
        // The index begins with its image.
        const loading = name === INDEX ? 'eager' : 'lazy'
        return markup`<picture>${source}<img src="${url}" alt="${text}" width="${width}" height="${height}" loading="${loading}"></picture>`
          .markup
      },
      code({ text, lang = '' }) {
        const caption = LANGUAGES[lang] ?? 'Text'
        return sample(caption, text).markup
      },
      codespan({ text }) {
        const html = `<code>${escape(text)}</code>`
        return SERVER_PATHS.has(text) ? `<a href="${text}">${html}</a>` : html
      },
      table({ header, rows }) {
        const cells = (row: Tokens.TableCell[]) =>
          row.map(({ tokens }) => `<td>${this.parser.parseInline(tokens)}</td>`).join('')
        const titles = header
          .map(({ tokens }) => this.parser.parseInline(tokens))
          .map(html => (html === '' ? '<td></td>' : `<th scope="col">${html}</th>`))
        const body = rows.map(row => `<tr>${cells(row)}</tr>`)
        return `<div class="wide"><table><thead><tr>${titles.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>\n`
      },
    },
  })
}

/** Returns the URL for a link of a guide, or undefined for a file that the server does not have. */
function toUrl(href: string): string | undefined {
  if (/^([a-z]+:|#)/.test(href)) return href
  const [, path = '', fragment = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? []
  if (path === `${INDEX}.md` || path === `../${INDEX}.md`) return '/docs'
  const page = /^(?:\.\/)?([\w-]+)\.md$/.exec(path)?.[1]
  return page === undefined ? undefined : `/docs/${page}${fragment}`
}

/** The fragment that code hosts give to a heading. */
function toSlug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

function toSections(html: string, headings: readonly Heading[]): Section[] {
  return splitAtHeadings(html).map((part, at) => {
    const { id = '', text = '' } = headings[at] ?? {}
    const content = part.replace(/^<h\d[\s\S]*?<\/h\d>/, '')
    return { anchor: at === 0 ? '' : id, title: text, text: toText(content) }
  })
}

function splitAtHeadings(html: string): string[] {
  return html.split(/(?=<h[1-6] id=)/).filter(part => part.startsWith('<h'))
}

function toText(html: string): string {
  return html
    .replace(/<\/(p|li|td|th|pre|figcaption|tr)>/g, ' ')
    .replace(/<[^>]*>/g, '')
    .replace(/&(lt|gt|quot|#39|amp);/g, (_, entity: string) => ENTITIES[entity] ?? '')
    .replace(/\s+/g, ' ')
    .trim()
}

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }

function escape(text: string): string {
  return markup`${text}`.markup
}
