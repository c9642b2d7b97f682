/**
 * Returns the locale of dates, units and lists for a reader: English words, with the clock and the
 * order of dates of the reader's region. Numbers need no words, and have the reader's own locale.
 */
export function toEnglish(reader?: string): string {
  if (reader !== undefined) return convert(reader)
  own ??= convert(Intl.DateTimeFormat().resolvedOptions().locale)
  return own
}

/** The locale for the reader of this page. Every format of the first paint needs it. */
let own: string | undefined

function convert(reader: string): string {
  const { language, region } = new Intl.Locale(reader).maximize()
  if (language === 'en') return reader
  const { hourCycle } = Intl.DateTimeFormat(reader, { hour: 'numeric' }).resolvedOptions()
  return `en-${region}-u-hc-${hourCycle}`
}

/** A count with its noun, such as "1 event" or "1,000 events". */
export function toPlural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`
}
