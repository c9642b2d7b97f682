/** The languages of the screens, with their own names. */
export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const
export type Language = keyof typeof LANGUAGES

/** Languages that are written from right to left. The screens have none yet. */
const RIGHT_TO_LEFT: ReadonlySet<string> = new Set(['ar', 'fa', 'he', 'ur'])

/** A part of the messages, which pages load together. */
export type Section =
  | 'account'
  | 'app'
  | 'auth'
  | 'event'
  | 'insights'
  | 'openid'
  | 'organization'
  | 'palette'
  | 'people'
  | 'search'
  | 'serverTexts'
  | 'settings'
  | 'start'
  | 'views'
  | 'words'
/** The manifest of the installed application in each language. */
export const MANIFESTS = {
  en: '/assets/manifest.webmanifest',
  de: '/assets/manifest-de.webmanifest',
} as const satisfies Record<Language, string>

/**
 * The name of the file with a section, which stands beside the scripts. Undefined for the texts of
 * the server in English, because it writes them so itself.
 */
export function toMessageFile(language: Language, section: Section): string | undefined {
  return section === 'serverTexts' && language === 'en' ? undefined : `${language}-${section}.json`
}

/** The first of `wanted`, such as `de-AT`, whose language the screens have. */
export function findLanguage(wanted: readonly string[]): Language | undefined {
  return wanted.map(one => one.split('-')[0] ?? '').find(isLanguage)
}

/** Returns the direction in which a language is written. */
export function toDirection(language: string): 'ltr' | 'rtl' {
  return RIGHT_TO_LEFT.has(language) ? 'rtl' : 'ltr'
}

export function isLanguage(name: string | undefined): name is Language {
  return name !== undefined && Object.hasOwn(LANGUAGES, name)
}
