/** HTML. Everything else that reaches a page is escaped. */
export interface Markup {
  readonly markup: string
}

export type Piece = Markup | string | number | false | undefined | readonly Piece[]

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Returns HTML from a template. Escapes strings for text and for quoted attributes. */
export function markup(literals: TemplateStringsArray, ...pieces: Piece[]): Markup {
  return { markup: literals.map((literal, at) => literal + render(pieces[at])).join('') }
}

/** Renders paragraphs between blank lines, and code between backticks. */
export function prose(text: string): Markup[] {
  return text.split(/\n{2,}/).map(paragraph => markup`<p>${inline(paragraph)}</p>`)
}

/** Renders one line, with code between backticks. */
export function inline(text: string): Piece[] {
  return text
    .split(/`([^`]+)`/)
    .map((part, at) => (at % 2 === 1 ? markup`<code>${part}</code>` : part))
}

/** Returns the pieces with `separator` between them. */
export function join(pieces: readonly Piece[], separator: string): Piece[] {
  return pieces.flatMap((piece, at) => (at === 0 ? [piece] : [separator, piece]))
}

/** Code with a caption. The script of the page adds a button that copies it. */
export function sample(caption: string, text: Piece): Markup {
  return markup`<figure class="code-block"><figcaption>${caption}</figcaption><pre><code>${text}</code></pre></figure>`
}

/** The method of an operation. */
export function methodBadge(method: string): Markup {
  const tone = { POST: 'badge-good', DELETE: 'badge-bad' }[method] ?? ''
  return markup`<span class="badge method ${tone}">${method}</span>`
}

/** A link to a heading, shown when the reader points at the heading. */
export function anchorLink(anchor: string, title: string): Markup {
  return markup`<a class="anchor" href="#${anchor}" aria-label="Link to ${title}">#</a>`
}

/** Returns the words as a fragment of a URL. */
export function toAnchor(...words: string[]): string {
  return words.join('-').replace(/[^\w-]+/g, '-')
}

function render(piece: Piece): string {
  if (piece === undefined || piece === false) return ''
  if (typeof piece === 'object')
    return 'markup' in piece ? piece.markup : piece.map(render).join('')
  return String(piece).replace(/[&<>"']/g, sign => ENTITIES[sign] ?? sign)
}
