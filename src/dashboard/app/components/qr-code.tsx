import type { QrCode as Code } from '../../../http/qr-code.ts'

/** The light margin around the QR code, in modules. */
const MARGIN = 4

/** A QR code, dark on light in every theme. */
export function QrCode({ qr: { size, path } }: { qr: Code }) {
  const side = size + 2 * MARGIN
  return (
    <svg
      class="qr-code"
      viewBox={`${-MARGIN} ${-MARGIN} ${side} ${side}`}
      role="img"
      aria-label="QR code"
    >
      <path d={path} />
    </svg>
  )
}
