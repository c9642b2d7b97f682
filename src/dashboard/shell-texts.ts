import { LANGUAGES, MANIFESTS, type Language } from './app/locales/languages.ts'
import { readCatalogue } from './messages.ts'

// The texts outside of scripts: those of the page, of its manifest and of its service worker. The
// build writes them into these files.

const NAMES = Object.keys(LANGUAGES) as Language[] // The type of LANGUAGES guarantees it.

/** The fields of a manifest that have texts. */
interface Manifest {
  description: string
  lang: string
  shortcuts: { name: string }[]
}

/** Returns the manifest of each language, by the name of its file. */
export function toManifests(template: string): Map<string, Uint8Array> {
  return new Map(
    NAMES.map(lang => {
      const manifest = JSON.parse(template) as Manifest // The file in app/.
      const shortcuts = manifest.shortcuts.map(one => ({ ...one, name: getText(lang, one.name) }))
      const text = JSON.stringify({
        ...manifest,
        description: getText(lang, 'description'),
        lang,
        shortcuts,
      })
      return [MANIFESTS[lang].replace('/assets/', ''), Buffer.from(text)]
    }),
  )
}

/** Returns the paragraphs for browsers without JavaScript, one in each language. */
export function toNoScript(): string {
  return NAMES.map(language => {
    const text = getText(language, 'noScript')
      .replace('<docs>', '<a href="/docs">')
      .replace('</docs>', '</a>')
    return `<p class="noscript" lang="${language}">${text}</p>`
  }).join('')
}

/** The body of notifications without a text, in each language. */
export function toNewEventTexts(): Record<Language, string> {
  const texts = NAMES.map(language => [language, getText(language, 'newEvent')])
  return Object.fromEntries(texts) as Record<Language, string> // One text for each of NAMES.
}

/** Returns a text of `shell.json` in a language. */
function getText(language: Language, key: string): string {
  const text = readCatalogue(language)['shell']?.[key]
  if (text === undefined) throw new Error(`There is no message shell.${key} in ${language}`)
  return text
}
