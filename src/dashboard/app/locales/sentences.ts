import { i18n } from '@lingui/core'
import type { FailureTexts } from '../request.ts'
import { loadMessages, toNumber } from './translate.tsx'

/** The keys of translated sentences: the name of their file, then the sentence in English. */
const FILE = 'sentences.'
/** A number as the server writes it in a sentence, such as 1,000. */
const GROUPED = /^\d{1,3}(,\d{3})+$/

/**
 * Returns a sentence of the server, which writes English, in the language of the page. The section
 * `serverTexts` must be loaded.
 */
export function toOwnLanguage(text: string): string {
  const { messages } = i18n
  if (FILE + text in messages) return i18n._(FILE + text)
  if (GROUPED.test(text)) return toNumber(Number(text.replaceAll(',', '')))
  // The longest first: a sentence can begin with another one.
  const keys = Object.keys(messages).filter(key => key.startsWith(FILE) && key.includes('{'))
  for (const key of keys.sort((a, b) => b.length - a.length)) {
    const values = toPattern(key).exec(FILE + text)?.groups
    if (!values) continue
    const own = Object.entries(values).map(([name, value]) => [name, toOwnLanguage(value)])
    return i18n._(key, Object.fromEntries(own))
  }
  return text
}

/** Translates the texts of a failure in place. */
export async function translateFailure(failure: FailureTexts): Promise<void> {
  await loadMessages('serverTexts')
  const { details = [] } = failure
  for (const texts of [failure, ...details]) {
    if (texts.message !== undefined) texts.message = toOwnLanguage(texts.message)
  }
  if (failure.error !== undefined) failure.error = toOwnLanguage(failure.error)
}

/** Matches the sentences of a key, with the values of its placeholders as groups. */
function toPattern(key: string): RegExp {
  const literal = key.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replace(/\{(\w+)\}/g, '(?<$1>.+)')}$`, 's')
}
