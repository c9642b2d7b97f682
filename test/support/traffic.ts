import { appendFileSync, readFileSync } from 'node:fs'

/** The file that receives traffic; the test that replays it sets the variable. */
const FILE = process.env['TIDINGS_TRAFFIC']

/** A request of the tests, and the answer of the server. */
export interface Traffic {
  method: string
  /** With the query. */
  path: string
  headers: Record<string, string>
  body: string | undefined
  answer: { status: number; headers: Record<string, string>; text: string }
}

/** Appends an exchange to the file, if there is one. Leaves out bodies that are no text. */
export function recordTraffic(
  url: string,
  { method, headers, body }: { method: string; headers: object; body?: unknown },
  { status, headers: answered, text }: { status: number; headers: Headers; text: string },
): void {
  if (FILE === undefined || (body !== undefined && typeof body !== 'string')) return
  const { pathname, search } = new URL(url)
  // `fetch` has unpacked the text.
  const names = [...answered].filter(([name]) => !/^content-(encoding|length)$/.test(name))
  const answer = { status, headers: Object.fromEntries(names), text }
  const traffic = { method, path: pathname + search, headers, body, answer }
  appendFileSync(FILE, `${JSON.stringify(traffic)}\n`)
}

export function readTraffic(file: string): Traffic[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map(line => JSON.parse(line) as Traffic)
}
