import type { BrowserContext } from 'playwright-core'
import { unpackMessages } from '../../src/dashboard/app/locales/packed.ts'
import { assetContent } from '../../src/dashboard/assets.ts'
import type { TestPage } from '../support/chromium.ts'

// A pseudo-locale: English, with an invisible mark before each word of a message. Texts without the
// mark do not come from the catalogue. Playwright ignores the mark when it looks for a text.

const MARK = '\u200b'
const MESSAGES = /\/assets\/\w+\/en-\w+\.json$/
const WORD = /<[^>]*>|\p{L}[\p{L}\p{M}'’]*/gu

/** Names, which are the same in every language. */
const SAME = new Set([
  ...['Tidings', 'Slack', 'Discord', 'Telegram', 'ntfy', 'English', 'Deutsch'],
  ...['curl', 'JavaScript', 'Python', 'Go', 'Ruby', 'PHP'],
])

/** The marked messages of a built file. */
const readMarked = (name: string): string => {
  const packed = JSON.parse(Buffer.from(assetContent(name).body).toString())
  return JSON.stringify([mark(unpackMessages(packed))])
}

/** Marks the messages that pages of `context` load. */
export async function markMessages(context: BrowserContext): Promise<void> {
  await context.route(MESSAGES, route => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1) ?? ''
    return route.fulfill({ contentType: 'application/json', body: readMarked(name) })
  })
}

/** Marks a compiled message, or all messages of a file. Names of placeholders stay. */
function mark(compiled: unknown): unknown {
  if (typeof compiled === 'string')
    return compiled.replace(WORD, word => (word.startsWith('<') ? word : MARK + word))
  if (!Array.isArray(compiled)) {
    const entries = Object.entries(compiled as object)
    return Object.fromEntries(entries.map(([key, value]) => [key, mark(value)]))
  }
  return compiled.map((part: unknown) => {
    if (!Array.isArray(part)) return mark(part)
    const [name, kind, cases] = part as [string, string?, object?]
    if (kind === undefined) return part
    return typeof cases === 'object' ? [name, kind, markCases(cases)] : part
  })
}

/** Marks the cases of a plural or a choice. `offset` is a number. */
function markCases(cases: object): object {
  return Object.fromEntries(
    Object.entries(cases).map(([name, value]) => [
      name,
      typeof value === 'number' ? value : mark(value),
    ]),
  )
}

/** Texts of the fake server. A real one has a message for each of its texts. */
const FROM_SERVER = /^(?:The database cannot be reached|Too many attempts|No GET )/
/** Times and dates, which browsers write in the language of the page, and keys of the keyboard. */
const FORMATTED =
  /\d\d?:\d\d|^(?:\d[\d.,]*(?:ms|s|m|h)|Today|Yesterday|\p{Lu}\p{Ll}+day\b.*|\p{L})$/u

/** Lists the visible texts of a page, and the names of its elements, that are no messages. */
export async function findUnmarked({ page }: TestPage): Promise<string[]> {
  const found = await page.evaluate(sign => {
    // Texts of users, code and times are not messages.
    const OTHERS =
      'bdi, [dir=auto], span[lang=en], code, pre, kbd, time, script, style, noscript, textarea'
    const isPlain = (text: string | null) =>
      text !== null && /\p{L}/u.test(text) && !text.includes(sign)
    const texts: string[] = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
      const { parentElement, nodeValue } = walker.currentNode
      if (!isPlain(nodeValue) || !parentElement || parentElement.closest(OTHERS)) continue
      texts.push((nodeValue ?? '').trim())
    }
    for (const element of document.body.querySelectorAll('*'))
      for (const name of [
        'aria-label',
        'placeholder',
        'alt',
        'aria-description',
        'aria-valuetext',
      ]) {
        const value = element.getAttribute(name)
        if (isPlain(value) && !element.closest('time')) texts.push(`${name}: ${value}`)
      }
    return texts
  }, MARK)
  return [...new Set(found)].filter(found => {
    const text = found.replace(/^(?:aria-\w+|placeholder|alt): /, '')
    return !SAME.has(text) && !FORMATTED.test(text) && !FROM_SERVER.test(text)
  })
}
