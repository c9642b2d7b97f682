const CONTROL = /[\x00-\x1f]/

/**
 * Returns a Postgres array literal, to be sent as `${toArray(xs)}::text[]`. postgres.js derives the
 * type of an array from its first element, and cannot send arrays without its start-up type query.
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

/** Returns the Postgres literal of bytes in hex. */
export function toBytea(hex: string): string {
  return `\\x${hex}`
}

/**
 * Places each row of an `unnest … with ordinality` statement at the index of its element. `ord`
 * counts from 1. Elements without a row are undefined.
 */
export function alignRows<Row extends { ord: number }>(
  rows: readonly Row[],
  length: number,
): (Row | undefined)[] {
  const aligned = new Array<Row | undefined>(length).fill(undefined)
  for (const row of rows) aligned[row.ord - 1] = row
  return aligned
}

function quote(value: string): string {
  const isPlain = !value.includes('"') && !value.includes('\\')
  if (isPlain) return `"${value}"`
  // Without control characters, JSON has the same escapes, and a native function writes them.
  return CONTROL.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : JSON.stringify(value)
}
