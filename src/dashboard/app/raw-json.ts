// Adds JSON.rawJSON, and the source text of numbers, which `parseExact` uses, to older browsers:
// Safari before 18.4, Firefox before 135 and Chromium before 114.

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown

/** A JSON string, or a number. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
/** Begins the strings that stand for numbers. No text that the server stores contains it. */
const MARK = '\u0000'
const { parse, stringify } = JSON

class RawJson {
  readonly rawJSON: string
  constructor(text: string) {
    this.rawJSON = text
  }
  toJSON() {
    return MARK + this.rawJSON
  }
}

function parseWithSource(text: string, revive?: Reviver): unknown {
  if (!revive) return parse(text)
  const marked = text.replace(TOKEN, token => (token[0] === '"' ? token : `"\\u0000${token}"`))
  return parse(marked, function (this: unknown, key, value) {
    const source = typeof value === 'string' && value[0] === MARK ? value.slice(1) : undefined
    return source === undefined
      ? revive.call(this, key, value, {})
      : revive.call(this, key, Number(source), { source })
  })
}

function stringifyRaw(...args: Parameters<typeof stringify>): string | undefined {
  return stringify(...args)?.replace(/"\\u0000(.*?)"/g, '$1')
}

if (!('rawJSON' in JSON)) {
  Object.assign(JSON, {
    rawJSON: (text: string) => new RawJson(text),
    isRawJSON: (value: unknown) => value instanceof RawJson,
    parse: parseWithSource,
    stringify: stringifyRaw,
  })
}
