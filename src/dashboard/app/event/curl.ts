import type { Event } from '../../../events/schema.ts'

/**
 * A command that sends an event like this one again. What an event says is somebody else's and is pasted into a shell:
 * there is nothing in it that any shell, or the terminal itself, would take for more than text.
 */
export function toCurl(event: Event, origin: string): string {
  const { channelName, title, description, icon, tags, metadata, userId, source, notify } = event
  const body = {
    channelName,
    title,
    ...(description !== null && { description }),
    ...(icon !== null && { icon }),
    ...(tags.length > 0 && { tags }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(userId !== null && { userId }),
    source,
    notify,
  }
  return [
    `curl ${origin}/v1/events`,
    "  -H 'Authorization: Bearer YOUR_API_KEY'",
    "  -H 'Content-Type: application/json'",
    `  -d '${toShellJson(body)}'`,
  ].join(' \\\n')
}

/** JSON in which quotes only ever begin and end strings, and that has no character with a meaning elsewhere. */
export function toShellJson(value: object): string {
  return JSON.stringify(value)
    .replace(/\\(["\\])/g, (_, escaped: string) => toEscape(escaped))
    .replace(/[&|<>^%!`$'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
      // Emoji are joined by this one.
      character === '\u200d' ? character : toEscape(character),
    )
}

function toEscape(text: string): string {
  return Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
    .map(code => `\\u${code.toString(16).padStart(4, '0')}`)
    .join('')
}
