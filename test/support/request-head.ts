const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/

/**
 * Returns why a strict server refuses a request with these headers; undefined if it does not. The
 * server of Bun, on which test servers run, also accepts requests that Node and nginx answer with
 * 400. `rawHeaders` alternates names and values, as they arrived.
 */
export function findHeaderProblem(rawHeaders: readonly string[]): string | undefined {
  const names = rawHeaders.filter((_, at) => at % 2 === 0).map(name => name.toLowerCase())
  const repeated = names.find((name, at) => names.indexOf(name) < at)
  if (repeated !== undefined) return `RFC 9110 §5.3: the header ${repeated} is repeated`
  const invalid = names.find(name => !TOKEN.test(name))
  if (invalid !== undefined) return `RFC 9110 §5.1: the header name ${invalid} is invalid`
  if (!names.includes('host')) return 'RFC 9112 §3.2: the header host is missing'
  if (names.includes('content-length') && names.includes('transfer-encoding'))
    return 'RFC 9112 §6.2: content-length and transfer-encoding'
  return undefined
}
