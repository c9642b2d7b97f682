import { Type, type Static } from '@sinclair/typebox'
import { encode } from 'uqr'
import { closed } from './schema-parts.ts'

/** A QR code, as an SVG path. */
export const QrCode = Type.Object(
  {
    size: Type.Integer({
      minimum: 21,
      description: 'The number of modules in a row, without a margin.',
    }),
    path: Type.String({ description: 'The dark modules, as an SVG path of this size.' }),
  },
  closed,
)
export type QrCode = Static<typeof QrCode>

/** Returns the QR code of a text, with medium error correction. */
export function toQrCode(text: string): QrCode {
  const { size, data } = encode(text, { ecc: 'M', border: 0 })
  return { size, path: data.map(toRow).join('') }
}

/** Returns the SVG path of one row. Adjacent dark modules become one rectangle. */
function toRow(row: readonly boolean[], y: number): string {
  const text = row.map(isDark => (isDark ? '#' : ' ')).join('')
  return [...text.matchAll(/#+/g)]
    .map(({ 0: { length }, index }) => `M${index} ${y}h${length}v1h-${length}z`)
    .join('')
}
