/** The push services of browsers: FCM, Mozilla, Apple, Windows. */
const SERVICES = [
  /^fcm\.googleapis\.com$/,
  /^([a-z0-9-]+\.)*push\.services\.mozilla\.com$/,
  /^([a-z0-9-]+\.)+push\.apple\.com$/,
  /^([a-z0-9-]+\.)+notify\.windows\.com$/,
]

/**
 * The endpoint that a browser was given, when it is one of a known push service; undefined for any other. Judged by what
 * parsing has made of it: https on port 443, or one of `hosts`, which may have another port.
 */
export function parseEndpoint(text: string, hosts: readonly string[]): URL | undefined {
  if (text.length > 2048 || !URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined
  url.hash = ''
  const isKnown = url.port === '' && SERVICES.some(service => service.test(url.hostname))
  return isKnown || hosts.includes(url.host) ? url : undefined
}
