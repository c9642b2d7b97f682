/** The path in a request's URL, as it was sent. The URL itself need not be valid: its host is what the caller claims. */
export function toPathname(url: string): string {
  const start = url.indexOf('/', 8)
  const end = url.indexOf('?', start)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}
