import { i18n } from '@lingui/core'
import type { ComponentChildren } from 'preact'
import type { MessageKey } from './catalogue.ts'
import { isLanguage, toMessageFile, type Language, type Section } from './languages.ts'
import { unpackMessages } from './packed.ts'
import { store } from '../storage.ts'

type Values = Readonly<Record<string, string | number>>

/** Returns a message in the language of the page. Call it while rendering, never at import. */
export function t(key: MessageKey, values?: Values): string {
  return i18n._(key, values)
}

/** Returns whether the page has loaded a message. */
export function hasMessage(key: string): boolean {
  return key in i18n.messages
}

/** The language of the page, which language-early.ts has set. */
function getLanguage(): Language {
  const { lang } = document.documentElement
  return isLanguage(lang) ? lang : 'en'
}

/** Shows all pages in `chosen` from now on; undefined follows the browser. Reloads the page. */
export function chooseLanguage(chosen: Language | undefined): void {
  store('language', chosen ?? '')
  location.reload()
}

/**
 * The locale for times and numbers: the browser's own, such as `en-GB`, if it is of the page's
 * language.
 */
export function getLocale(): string {
  if (typeof document === 'undefined') return 'en'
  const language = getLanguage()
  return navigator.languages.find(one => one.split('-')[0] === language) ?? language
}

/** A number as people of the locale write it, such as 1,000. */
export function toNumber(number: number): string {
  return number.toLocaleString(getLocale())
}

/** Loads the messages of a section. Rejects if they cannot be fetched. */
export async function loadMessages(section: Section): Promise<void> {
  const language = getLanguage()
  const file = toMessageFile(language, section)
  if (file === undefined) return
  const response = await fetch(new URL(file, import.meta.url))
  if (!response.ok) throw new Error(`The messages of ${section} are missing`)
  i18n.load(language, unpackMessages(await response.json()))
  if (i18n.locale !== language) i18n.activate(language, getLocale())
}

const TOKEN = /<(\w+)>(.*?)<\/\1>|\u{E000}(\w+)\u{E001}/gsu

interface RichOptions {
  key: MessageKey
  /** Texts and numbers, and elements for untrusted text, by the names of the placeholders. */
  values?: Readonly<Record<string, ComponentChildren>>
  /** Makes an element of the text between `<name>` and `</name>`. */
  elements?: Readonly<Record<string, (text: ComponentChildren) => ComponentChildren>>
}

/** A message with elements in it, such as links and untrusted text. Values are never markup. */
export function toRich({ key, values = {}, elements = {} }: RichOptions): ComponentChildren {
  const marked = Object.entries(values).map(([name, value]) => [
    name,
    typeof value === 'number' ? value : `\u{E000}${name}\u{E001}`,
  ])
  return split(i18n._(key, Object.fromEntries(marked)))

  function split(text: string): ComponentChildren[] {
    const parts: ComponentChildren[] = []
    let end = 0
    for (const match of text.matchAll(TOKEN)) {
      const [all, element = '', inner = '', name = ''] = match
      parts.push(text.slice(end, match.index))
      parts.push(name === '' ? elements[element]?.(split(inner)) : values[name])
      end = match.index + all.length
    }
    return [...parts, text.slice(end)]
  }
}
