import { Resvg } from '@resvg/resvg-js'

/** The background of the logo, a square with round corners. */
const BACKGROUND = /<rect [^>]*\/>/
const SIZE = 32
/** The inner circle with 80 % of the size of a maskable icon is always visible. */
const MASK_MARGIN = 3

/** Draws the PNG icons of the installed app, by file name, from the 32 x 32 logo. */
export function drawIcons(svg: string): Map<string, Uint8Array> {
  const square = svg.replace(/ rx="\d+"/, '')
  const maskable = square
    .replace(BACKGROUND, background => `${background}<g transform="${toShrunk(MASK_MARGIN)}">`)
    .replace('</svg>', '</g></svg>')
  return new Map([
    ['icon-192.png', draw(svg, 192)],
    ['icon-512.png', draw(svg, 512)],
    ['maskable-192.png', draw(maskable, 192)],
    ['maskable-512.png', draw(maskable, 512)],
    // iOS rounds the corners itself and paints transparent pixels black.
    ['apple-touch-icon.png', draw(square, 180)],
    // A status bar shows only the outline.
    ['badge.png', draw(svg.replace(BACKGROUND, ''), 96)],
  ])
}

function draw(svg: string, width: number): Uint8Array {
  // The logo has no text, and the fonts of the system take a third of a second to load.
  const font = { loadSystemFonts: false }
  return new Resvg(svg, { font, fitTo: { mode: 'width', value: width } }).render().asPng()
}

function toShrunk(margin: number): string {
  return `translate(${margin} ${margin}) scale(${(SIZE - 2 * margin) / SIZE})`
}
