const MAIL = /^mailto:[^\s@:/?#<>]+@([\w-]+\.)+[\w-]{2,}$/

/**
 * Whom a push service may write to about what we send: a mailto: or https: address that the world can reach, because
 * Apple's refuses others. Undefined for one that is not.
 */
export function parseVapidSubject(text: string): string | undefined {
  if (text.length > 255) return undefined
  if (MAIL.test(text)) return /@(.*\.)?localhost$|\.localhost$/i.test(text) ? undefined : text
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, username, password } = new URL(text)
  const isNamed = /\.[a-z][a-z0-9-]*\.?$/i.test(hostname) && !/(^|\.)localhost\.?$/i.test(hostname)
  return protocol === 'https:' && isNamed && username === '' && password === '' ? text : undefined
}
