import {
  findLanguage,
  isLanguage,
  MANIFESTS,
  toDirection,
  toMessageFile,
} from './locales/languages.ts'
import { readStored } from './storage.ts'

// Runs before the first paint. It sets the language, and loads its messages beside the scripts.
const chosen = readStored('language')
const language = isLanguage(chosen) ? chosen : (findLanguage(navigator.languages) ?? 'en')
document.documentElement.lang = language
document.documentElement.dir = toDirection(language)
if (language !== 'en')
  document.querySelector('link[rel=manifest]')?.setAttribute('href', MANIFESTS[language])

const link = document.createElement('link')
link.rel = 'preload'
link.as = 'fetch'
link.crossOrigin = 'anonymous'
const { src } = document.currentScript as HTMLScriptElement
link.href = String(new URL(toMessageFile(language, 'app') ?? '', src))
document.head.append(link)
