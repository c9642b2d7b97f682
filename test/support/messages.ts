import { i18n } from '@lingui/core'
import { readCatalogue } from '../../src/dashboard/messages.ts'

/** Loads the English messages, so that unit tests read the texts that pages show. */
export function loadEnglish(): void {
  const messages = Object.entries(readCatalogue('en')).flatMap(([file, texts]) =>
    Object.entries(texts).map(([key, text]) => [`${file}.${key}`, text]),
  )
  i18n.load('en', Object.fromEntries(messages))
  i18n.activate('en')
}
