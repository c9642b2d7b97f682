import { toEnglish } from '../locale.ts'

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte', 'petabyte'] as const

/** Formats bytes with the largest fitting unit, in steps of 1,000. */
export function toSize(bytes: number, locale?: string): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(bytes || 1) / 3)))
  return new Intl.NumberFormat(toEnglish(locale), {
    style: 'unit',
    unit: UNITS[step] ?? 'byte',
    unitDisplay: step === 0 ? 'long' : 'short',
    maximumSignificantDigits: 3,
  }).format(bytes / 1000 ** step)
}
