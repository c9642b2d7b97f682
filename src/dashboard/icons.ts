import { Resvg } from '@resvg/resvg-js'

/** What stands behind the mark, with round corners. */
const GROUND = /<rect [^>]*\/>/
const SIZE = 32
/** Of a maskable icon, a circle of four fifths is never cut off. */
const MASK_MARGIN = 3

/** The icons of an installed app by their names, as PNG, from the one drawing of 32 by 32. */
export function drawIcons(svg: string): Map<string, Uint8Array> {
  const square = svg.replace(/ rx="\d+"/, '')
  const maskable = square
    .replace(GROUND, ground => `${ground}<g transform="${toShrunk(MASK_MARGIN)}">`)
    .replace('</svg>', '</g></svg>')
  return new Map([
    ['icon-192.png', draw(svg, 192)],
    ['icon-512.png', draw(svg, 512)],
    ['maskable-192.png', draw(maskable, 192)],
    ['maskable-512.png', draw(maskable, 512)],
    // iOS rounds the corners itself, and paints black what can be seen through.
    ['apple-touch-icon.png', draw(square, 180)],
    // In a status bar: its outline is all that shows.
    ['badge.png', draw(svg.replace(GROUND, ''), 96)],
  ])
}

function draw(svg: string, width: number): Uint8Array {
  return new Resvg(svg, { fitTo: { mode: 'width', value: width } }).render().asPng()
}

function toShrunk(margin: number): string {
  return `translate(${margin} ${margin}) scale(${(SIZE - 2 * margin) / SIZE})`
}
