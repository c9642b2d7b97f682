import { t } from '../locales/translate.tsx'

/** The server's name for a browser that it does not know. */
const UNKNOWN = /^A browser$/

/** Returns the server's name for a browser, such as `Firefox on Android`, in the language. */
export function toBrowserText(name: string): string {
  const [browser = '', system] = name.split(' on ')
  if (system !== undefined) return t('words.browserOn', { browser, system })
  return UNKNOWN.test(name) ? t('words.unknownBrowser') : name
}
