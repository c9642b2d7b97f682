import { markup, type Markup, type Piece } from './html.ts'

/** Code with a caption. The script of the page adds a button that copies it. */
export function sample(caption: string, text: Piece): Markup {
  return markup`<figure class="code-block"><figcaption>${caption}</figcaption><pre><code>${text}</code></pre></figure>`
}

/** A link to a heading, shown when the reader points at the heading. */
export function anchorLink(anchor: string, title: string): Markup {
  return markup`<a class="anchor" href="#${anchor}" aria-label="Link to ${title}">#</a>`
}
