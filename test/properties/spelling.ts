const RAW = Symbol('raw')

/** A number or other token that is written as it is, for JavaScript has no value for it. */
export interface Raw {
  [RAW]: string
}

export function raw(text: string): Raw {
  return { [RAW]: text }
}

export function isRaw(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && RAW in value
}

/** Parses JSON; a number that JavaScript would write differently keeps its text. */
export function parse(text: string): any {
  type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => any
  const keep: Reviver = (_, value, { source = '' }) =>
    typeof value === 'number' && String(value) !== source ? raw(source) : value
  return JSON.parse(text, keep as Parameters<typeof JSON.parse>[1])
}

/** Returns the value of a number in any spelling. */
export function toNumber(value: number | Raw): number {
  return typeof value === 'number' ? value : Number(value[RAW])
}

/**
 * Returns JSON text of `value` in one of many spellings. `style` 0 equals JSON.stringify; others
 * vary white space, escapes and the forms of numbers. Unlike JSON.stringify it keeps -0 and all
 * digits of integers.
 */
export function spell(value: unknown, style = 0): string {
  let state = style >>> 0
  const roll = (sides: number) => {
    if (style === 0) return 1
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state >>> 16) % sides
  }
  // Escapes make text up to six times as long: long text is not escaped.
  let left = 10_000
  const space = () => (roll(9) === 0 ? [' ', '\n', '\t ', '\r\n'][roll(4)] : '')
  const text = (value: string) => {
    left -= value.length
    const plain = JSON.stringify(value)
    if (left < 0 || roll(5) !== 0) return plain
    return `"${Array.from({ length: value.length }, (_, at) => {
      const unit = value.charCodeAt(at).toString(16).padStart(4, '0')
      return `\\u${roll(2) === 0 ? unit : unit.toUpperCase()}`
    }).join('')}"`
  }
  const number = (value: number) => {
    if (Object.is(value, -0)) return '-0'
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return value.toExponential()
    if (roll(6) === 0)
      return roll(2) === 0 ? value.toExponential() : value.toExponential().replace('e', 'E')
    return Number.isInteger(value) && roll(9) === 0 ? `${value}.0` : String(value)
  }
  const write = (value: unknown): string => {
    if (typeof value === 'string') return text(value)
    if (typeof value === 'number') return number(value)
    if (typeof value !== 'object' || value === null) return String(value)
    if (isRaw(value)) return value[RAW]
    if (Array.isArray(value)) {
      return `[${value.map(item => space() + write(item) + space()).join()}]`
    }
    return `{${Object.entries(value)
      .map(([key, item]) => `${space()}${text(key)}${space()}:${space()}${write(item)}${space()}`)
      .join()}}`
  }
  return space() + write(value) + space()
}

/** Returns equal JSON text for values that are written alike, regardless of key order. */
export function canonical(value: unknown, toText = spell): string {
  if (Array.isArray(value)) return `[${value.map(item => canonical(item, toText)).join()}]`
  if (typeof value === 'number' || isRaw(value)) return toText(value)
  if (typeof value !== 'object' || value === null) return String(JSON.stringify(value))
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item, toText)}`).join()}}`
}

/** Returns equal JSON text for values of equal meaning: numbers may be spelled differently. */
export function meaning(value: unknown): string {
  return canonical(value, number => {
    const [, sign, whole = '', fraction = '', exponent = '0'] =
      /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(spell(number)) ?? []
    const digits = BigInt(whole + fraction)
    let power = BigInt(exponent) - BigInt(fraction.length)
    let rest = digits
    while (rest > 0n && rest % 10n === 0n) {
      rest /= 10n
      power++
    }
    return rest === 0n ? `${sign}0` : `${sign}${rest}e${power}`
  })
}
