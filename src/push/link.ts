import { encode } from 'uqr'
import type { PageLink } from './schema.ts'

/** Where a phone opens the page on which it takes notifications, also as a QR code. */
export function toPageLink(siteUrl: string): PageLink {
  const url = `${siteUrl}/notifications`
  const { size, data } = encode(url, { ecc: 'M', border: 0 })
  return { url, qr: { size, path: data.map(toRow).join('') } }
}

/** The dark modules of one row, those beside each other as one rectangle. */
function toRow(row: readonly boolean[], y: number): string {
  const text = row.map(isDark => (isDark ? '#' : ' ')).join('')
  return [...text.matchAll(/#+/g)]
    .map(({ 0: { length }, index }) => `M${index} ${y}h${length}v1h-${length}z`)
    .join('')
}
