/**
 * A Postgres array literal, to be sent as `${toArray(xs)}::text[]`: postgres.js mistypes arrays by their first
 * element, and knows none at all without its start-up type query.
 */
export function toArray(values: readonly (string | number | boolean | null | undefined)[]): string {
  let literal = '{'
  for (let index = 0; index < values.length; index++) {
    const value = values[index]
    if (index > 0) literal += ','
    if (value === null || value === undefined) literal += 'NULL'
    else if (typeof value === 'string') literal += quote(value)
    else literal += String(value)
  }
  return `${literal}}`
}

/** Rows of a statement over `unnest … with ordinality`, each at its `ord`; undefined where an element has none. */
export function alignRows<Row extends { ord: number }>(
  rows: readonly Row[],
  length: number,
): (Row | undefined)[] {
  const places = new Array<Row | undefined>(length).fill(undefined)
  for (const row of rows) places[row.ord - 1] = row
  return places
}

function quote(value: string): string {
  const isPlain = !value.includes('"') && !value.includes('\\')
  return isPlain ? `"${value}"` : `"${value.replace(/["\\]/g, '\\$&')}"`
}
