import type { Event, EventInput } from '../../../log/events/schema.ts'

/**
 * A curl command that sends the same event again. Event data is untrusted and the command is pasted
 * into a shell, so no character in it has a special meaning to any shell or terminal.
 */
export function toCurl(event: Event, origin: string): string {
  const { channelName, title, description, icon, tags, metadata, userId, source, notify } = event
  // An event without a level has that of its channel, which can be another one.
  const { level = 'normal', url, thread, state } = event
  // JSON has no fields that are undefined.
  const body: Record<Exclude<keyof EventInput, 'timestamp' | 'user_id'>, unknown> = {
    channelName,
    title,
    description: description ?? undefined,
    icon: icon ?? undefined,
    tags: tags.length > 0 ? tags : undefined,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    userId: userId ?? undefined,
    source,
    notify,
    level,
    url,
    thread,
    state,
  }
  return [
    `curl ${origin}/v1/events`,
    "  -H 'Authorization: Bearer YOUR_API_KEY'",
    "  -H 'Content-Type: application/json'",
    `  -d '${toShellJson(body)}'`,
  ].join(' \\\n')
}

/** JSON with all characters escaped that shells or terminals interpret. */
export function toShellJson(value: object): string {
  return JSON.stringify(value)
    .replace(/\\(["\\])/g, (_, escaped: string) => toEscape(escaped))
    .replace(/[&|<>^%!`$'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
      // The zero-width joiner is part of emoji.
      character === '\u200d' ? character : toEscape(character),
    )
}

function toEscape(text: string): string {
  return Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
    .map(code => `\\u${code.toString(16).padStart(4, '0')}`)
    .join('')
}
