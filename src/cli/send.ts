import { takeStart, removeEscapeSequences } from '../base/display-text.ts'
import { LEVELS } from '../log/channels/level.ts'
import { fromPlainText } from '../log/events/new-event.ts'
import type { EventInput } from '../log/events/schema.ts'
import { STATES } from '../log/events/state.ts'
import { toParts } from '../base/config/values.ts'
import { command, toOneOf, UsageError } from './command.ts'
import { isRawNumber, parseExact } from '../http/exact-json.ts'
import { createApiClient } from './login.ts'

const NO_TITLE = 'Give a title, or text on standard input.'
const MAX_TITLE = 500
const MAX_DESCRIPTION = 5_000
/** Stands for standard input. */
const INPUT = '-'
/** More of standard input is not read. */
const MAX_INPUT_BYTES = 1024 * 1024

export const send = command({
  name: 'send',
  description:
    'Send an event. Requires TIDINGS_API_KEY or `tidings login`. TIDINGS_URL is http://localhost:3000 by default.',
  examples: [
    "tidings send 'New payment' --channel payments --icon 💰",
    "tail -n 20 backup.log | tidings send 'Backup failed' --channel ops --description - --tags backup,disk",
    'git log -1 --format=%B | tidings send --channel deploys',
    "tidings send 'Disk full' --channel ops --level critical --url https://grafana.example.com/d/disk",
    "tidings send 'Disk is free again' --channel ops --thread 'disk db1' --state resolved",
    'tidings send \'Signed up\' --channel users --user user_123 --metadata \'{"plan": "pro"}\' --no-notify',
  ],
  args: {
    title: {
      type: 'positional',
      required: false,
      description:
        'Title of the event. Without it, or with -, standard input is read: the first line is the title, the rest the description',
    },
    channel: {
      type: 'string',
      required: true,
      description: 'Name of the channel; created if it does not exist',
    },
    description: {
      type: 'string',
      description: 'Description of the event; - reads it from standard input',
    },
    icon: { type: 'string', description: 'An emoji' },
    tags: { type: 'string', description: 'Tags, separated by commas' },
    metadata: { type: 'string', description: 'A JSON object' },
    user: { type: 'string', description: 'A user_id or an alias' },
    notify: {
      type: 'boolean',
      default: true,
      description: 'Send push notifications',
      negativeDescription: 'Send no push notifications',
    },
    level: { type: 'string', description: 'low, normal, high or critical' },
    url: { type: 'string', description: 'An http or https address where the event leads' },
    thread: { type: 'string', description: 'Key of the thread that the event updates' },
    state: {
      type: 'string',
      description: 'State of the thread: resolved, succeeded, running, firing or failed',
    },
    source: { type: 'string', default: 'cli', description: 'Source of the event' },
    key: {
      type: 'string',
      description: 'Idempotency key: running the command again with it sends no second event',
    },
  },
  async run(args) {
    const { title, description, ...text } = await readText(args)
    const warn = (note: string) => {
      // With --json, standard error has at most one JSON value.
      if (!args.json) console.error(note)
    }
    const event: EventInput = {
      ...text,
      channelName: args.channel,
      title: shorten('title', title.trim(), MAX_TITLE, warn),
      notify: args.notify,
      source: args.source,
      ...(description !== undefined && {
        description: shorten('description', description, MAX_DESCRIPTION, warn),
      }),
      ...(args.icon !== undefined && { icon: args.icon }),
      ...(args.tags !== undefined && { tags: toParts(args.tags) }),
      ...(args.metadata !== undefined && { metadata: parseObject('metadata', args.metadata) }),
      ...(args.user !== undefined && { userId: args.user }),
      ...(args.level !== undefined && { level: toOneOf('level', LEVELS, args.level) }),
      ...(args.url !== undefined && { url: args.url }),
      ...(args.thread !== undefined && { thread: args.thread }),
      ...(args.state !== undefined && { state: toOneOf('state', STATES, args.state) }),
    }
    const options = args.key === undefined ? {} : { idempotencyKey: args.key }
    const sent = await createApiClient().events.create(event, options)
    return { json: sent, text: `Sent ${sent.id} to ${sent.channelName} (seq ${sent.seq})` }
  },
})

/** Returns the text of an event, from the arguments and from standard input. */
async function readText({
  title,
  description,
}: {
  title?: string | undefined
  description?: string | undefined
}): Promise<Pick<EventInput, 'title'> & Partial<EventInput>> {
  if (title === undefined && process.stdin.isTTY) throw new UsageError(NO_TITLE)
  if (title !== undefined && title !== INPUT) {
    return {
      title,
      ...(description !== undefined && {
        description: description === INPUT ? await readInput() : description,
      }),
    }
  }
  if (description === INPUT) {
    throw new UsageError('Standard input can be the title or the description, not both.')
  }
  const text = fromPlainText(await readInput())
  if (text.title === '') throw new UsageError(NO_TITLE)
  const parts = [description, text.description].filter(part => part !== undefined)
  return { ...text, ...(parts.length > 0 && { description: parts.join('\n\n') }) }
}

/** Reads text from standard input, without its colours. */
async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= MAX_INPUT_BYTES) break
  }
  const text = removeEscapeSequences(Buffer.concat(chunks).toString())
  // The server refuses this character.
  return text.replaceAll('\u0000', '\ufffd').trimEnd()
}

/** Cuts a text to a number of code points, because the server refuses a longer one. */
function shorten(name: string, text: string, max: number, warn: (note: string) => void): string {
  const points = [...text]
  if (points.length <= max) return text
  const note = `cut to ${max.toLocaleString('en')} characters`
  warn(`The ${name} was ${note}.`)
  const mark = name === 'title' ? '…' : `…\n(${note})`
  const start = points.slice(0, max - mark.length).join('')
  return takeStart(text, start.length) + mark
}

export const identify = command({
  name: 'identify',
  description:
    'Create or update a user. Requires TIDINGS_API_KEY or `tidings login`. TIDINGS_URL is http://localhost:3000 by default.',
  examples: [
    'tidings identify user_123 --aliases ada@example.com,ada',
    'tidings identify user_123 --properties \'{"plan": "pro"}\'',
  ],
  args: {
    user_id: { type: 'positional', required: true, description: 'Id of the user in your system' },
    properties: {
      type: 'string',
      description: 'A JSON object that replaces the stored properties',
    },
    aliases: { type: 'string', description: 'Aliases, separated by commas' },
  },
  async run(args) {
    const identified = await createApiClient().identify({
      user_id: args.user_id,
      ...(args.properties !== undefined && {
        properties: parseObject('properties', args.properties),
      }),
      ...(args.aliases !== undefined && { aliases: toParts(args.aliases) }),
    })
    const { created, failed = [] } = identified.aliases
    const lines = [
      `Identified ${identified.userId}`,
      ...created.map(alias => `  + ${alias}`),
      ...failed.map(({ alias, reason }) => `  - ${alias}: ${reason}`),
    ]
    return { json: identified, text: lines.join('\n') }
  },
})

/** Parses the text of an option as a JSON object. Throws a `UsageError` for anything else. */
function parseObject(option: string, text: string): Record<string, unknown> {
  try {
    const { value } = parseExact(text)
    if (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !isRawNumber(value)
    ) {
      return value as Record<string, unknown>
    }
  } catch {
    // Text that is not JSON gets the same error.
  }
  throw new UsageError(`--${option} must be a JSON object, like '{"plan": "pro"}'.`)
}
