import { parseJson } from '../../http/body.ts'
import { isObject } from '../events/metadata-values.ts'
import { InvalidRequest } from '../../http/validation.ts'

const decoder = new TextDecoder()
/** A whole pair of surrogates, or what Postgres cannot store, or another escape of JSON. */
const ESCAPES = /(\\ud[89ab]..\\ud[c-f]..)|(\\u(?:0000|d[89a-f]..))|\\[^]/gi

/** The text of a body, and its fields. */
export interface ReadBody {
  text: string
  body: object
}

/**
 * Reads a body in any form: a JSON object or array, a form, or text, which becomes the field
 * `text`. A form can have JSON in its field `payload`. Text that Postgres cannot store becomes
 * U+FFFD. Throws `unavailable`.
 */
export async function readBody(
  bytes: Uint8Array,
  { headers, ...from }: { headers: Headers; caller: string; signal?: AbortSignal },
): Promise<ReadBody> {
  const text = decoder.decode(bytes).replaceAll('\u0000', '\ufffd')
  // curl calls any text a form.
  const isForm =
    /^application\/x-www-form-urlencoded/i.test(headers.get('content-type') ?? '') &&
    /^[^\s={[][^\s=]*=/.test(text)
  const form = isForm ? Object.fromEntries(new URLSearchParams(text)) : undefined
  const body = (await parse(form?.['payload'] ?? (isForm ? '' : text), from)) ??
    form ?? { text: text.trim() }
  return { text, body }
}

async function parse(
  text: string,
  { caller, signal = new AbortController().signal }: { caller: string; signal?: AbortSignal },
): Promise<object | undefined> {
  const clean = text.replace(ESCAPES, (escape, pair?: string, bad?: string) =>
    pair === undefined && bad !== undefined ? '\ufffd' : escape,
  )
  try {
    // Within another object, every number keeps its digits.
    const { value } = await parseJson(Buffer.from(`{"body":${clean}}`), caller, signal)
    const { body, ...others } = value as Record<string, unknown>
    return isObject(body) && Object.keys(others).length === 0 ? body : undefined
  } catch (error) {
    if (error instanceof InvalidRequest) return undefined
    throw error
  }
}
