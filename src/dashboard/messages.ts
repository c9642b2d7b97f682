import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileMessage } from '@lingui/message-utils/compileMessage'
import { LANGUAGES, toMessageFile, type Language, type Section } from './app/locales/languages.ts'

/** The files of the catalogue that the build alone reads. */
const BUILD_FILES = ['shell']
/** The file with the server's own sentences, which are in English, and are their keys. */
const SENTENCES = 'sentences'
/** The files of the catalogue in each section. */
const FILES: Record<Section, readonly string[]> = {
  app: ['app', 'common', 'feed'],
  event: ['display', 'event'],
  words: ['words'],
  auth: ['auth'],
  start: ['start'],
  openid: ['openid'],
  people: ['channels', 'users'],
  account: ['account', 'push'],
  insights: ['insights', 'overview'],
  settings: ['keys', 'webhooks'],
  organization: ['audit', 'organization', 'server'],
  serverTexts: ['actions', SENTENCES],
  palette: ['palette'],
  search: ['search'],
  views: ['views'],
}

const folder = fileURLToPath(new URL('app/locales/', import.meta.url))

/** The messages of a language in ICU MessageFormat, by the name of their file, then their key. */
export type Messages = Record<string, Record<string, string>>

/** Reads the catalogue of a language. */
export function readCatalogue(language: string): Messages {
  const names = readdirSync(join(folder, language)).map(name => name.replace('.json', ''))
  const files = names.filter(name => name !== SENTENCES).sort()
  return Object.fromEntries(files.map(name => [name, readMessages(language, name)]))
}

/** Reads the translations of the server's sentences. */
export function readSentences(language: string): Messages[string] {
  return readMessages(language, SENTENCES)
}

function readMessages(language: string, name: string): Messages[string] {
  return JSON.parse(readFileSync(join(folder, language, `${name}.json`), 'utf8'))
}

/** Compiles the messages of all languages into the files that pages load. */
export function compileMessages(): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>()
  const english = readCatalogue('en')
  checkSections(english)
  for (const language of Object.keys(LANGUAGES) as Language[]) {
    const messages = readCatalogue(language)
    const problems = listDifferences(english, messages)
    if (problems.length > 0) throw new Error(`Messages in ${language}: ${problems.join(', ')}`)
    for (const section of Object.keys(FILES) as Section[]) {
      const name = toMessageFile(language, section)
      if (name === undefined) continue
      const compiled = FILES[section].flatMap(file =>
        Object.entries(messages[file] ?? readMessages(language, file)).map(([key, text]) => [
          `${file}.${key}`,
          compileMessage(text),
        ]),
      )
      const text = JSON.stringify(Object.fromEntries(compiled))
      files.set(name, Buffer.from(text))
    }
  }
  return files
}

/** Lists the messages that one of two languages lacks, and those with other placeholders. */
export function listDifferences(english: Messages, other: Messages): string[] {
  const expected = toPlaceholders(english)
  const found = toPlaceholders(other)
  return [...new Set([...expected.keys(), ...found.keys()])].flatMap(key => {
    const wanted = expected.get(key)
    const there = found.get(key)
    if (wanted === there) return []
    if (there === undefined) return [`${key} is missing`]
    if (wanted === undefined) return [`${key} is not in English`]
    return [`${key} has ${there || 'no placeholders'}, not ${wanted || 'none'}`]
  })
}

/** The names of placeholders and elements in each message, sorted. */
function toPlaceholders(messages: Messages): Map<string, string> {
  const names = new Map<string, string>()
  for (const [file, texts] of Object.entries(messages))
    for (const [key, text] of Object.entries(texts)) {
      const found = new Set<string>()
      collect(compileMessage(text), found)
      names.set(`${file}.${key}`, [...found].sort().join(' '))
    }
  return names
}

function collect(message: unknown, found: Set<string>): void {
  if (typeof message === 'string')
    for (const [, name = ''] of message.matchAll(/<(\w+)>/g)) found.add(`<${name}>`)
  else if (Array.isArray(message))
    for (const part of message) {
      if (typeof part === 'string') collect(part, found)
      else {
        const [name, , cases = {}] = part as [string, string?, Record<string, unknown>?]
        found.add(name)
        for (const inner of Object.values(cases)) collect(inner, found)
      }
    }
}

/** Each file of the catalogue is in one section, so that pages load it once. */
function checkSections(messages: Messages): void {
  const listed = [...Object.values(FILES).flat(), ...BUILD_FILES].sort()
  const there = [...Object.keys(messages), SENTENCES].sort()
  if (listed.join() !== there.join())
    throw new Error(`Sections have ${listed.join(', ')}; the catalogue has ${there.join(', ')}`)
}
