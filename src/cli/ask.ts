import { setTimeout as sleep } from 'node:timers/promises'
import { LEVELS } from '../log/channels/level.ts'
import { command, toOneOf, UsageError } from './command.ts'
import { createApiClient } from './login.ts'

const [UNAVAILABLE, EXPIRED, INTERRUPTED] = [69, 124, 130]
const WAIT_S = 50
const PAUSE_MS = 1_000
/** How long after its end the answer to a question is asked for, if the server is away. */
const GRACE_MS = 60_000
const UNITS = { s: 1, m: 60, h: 3_600, d: 86_400 }

export const ask = command({
  name: 'ask',
  description:
    'Ask members a question, and wait for the answer. Prints the id of the chosen action. The exit code is 0 for the first action, 1 for another one, 124 if nobody answers in time, and 69 after a failure. Requires TIDINGS_API_KEY or `tidings login`.',
  examples: [
    "tidings ask 'Deploy 1.4?' --action deploy --action abort --timeout 10m && ./deploy.sh",
    "tidings ask 'Delete the old backups?' --channel ops --action 'yes=Delete them' --action no --by admins",
  ],
  args: {
    question: { type: 'positional', required: true, description: 'Title of the event' },
    action: {
      type: 'string',
      required: true,
      description: 'Id of an action, or id=label. Repeat it for up to 4 actions',
    },
    timeout: { type: 'string', default: '10m', description: 'How long to wait: 30s, 10m, 2h, 1d' },
    channel: { type: 'string', default: 'questions', description: 'Name of the channel' },
    description: { type: 'string', description: 'Description of the event' },
    level: { type: 'string', description: 'low, normal, high or critical' },
    by: { type: 'string', description: 'The role that may answer: members, admins or owners' },
  },
  async run(args, words) {
    process.once('SIGINT', () => process.exit(INTERRUPTED))
    const actions = words
      .slice(0, words.indexOf('--'))
      .filter(word => word.startsWith('--action='))
      .map(word => word.slice('--action='.length).split('='))
      .map(([id = '', ...label]) => ({
        id,
        // An id can be longer than a label.
        label: label.join('=') || id.charAt(0).toUpperCase() + id.slice(1, 40),
      }))
    const seconds = toSeconds(args.timeout)
    const event = {
      channelName: args.channel,
      title: args.question,
      source: 'cli',
      actions,
      answer: {
        expiresInSeconds: seconds,
        ...(args.by !== undefined && {
          by: toOneOf('by', ['members', 'admins', 'owners'], args.by),
        }),
      },
      ...(args.description !== undefined && { description: args.description }),
      ...(args.level !== undefined && { level: toOneOf('level', LEVELS, args.level) }),
    }
    // Somebody waits already, so requests go on while the server restarts.
    const waiting = createApiClient({ retries: Infinity }).events
    const signal = AbortSignal.timeout(seconds * 1_000 + GRACE_MS)
    process.exitCode = UNAVAILABLE
    const { id } = await createApiClient().events.create(event, { signal })
    for (;;) {
      const startedMs = Date.now()
      const answer = await waiting.getAnswer(id, { wait: WAIT_S, signal })
      const { state, action } = answer
      if (state === 'waiting') {
        // A server that stops does not wait.
        if (Date.now() - startedMs < PAUSE_MS) await sleep(PAUSE_MS)
        continue
      }
      process.exitCode = state === 'expired' ? EXPIRED : Number(action !== actions[0]?.id)
      return { json: answer, text: action ?? undefined }
    }
  },
})

function toSeconds(text: string): number {
  const [, n, unit = 's'] = /^(\d+)([smhd]?)$/.exec(text) ?? []
  if (n === undefined) throw new UsageError('--timeout must be a time like 30s, 10m, 2h or 1d.')
  return Number(n) * UNITS[(unit || 's') as keyof typeof UNITS]
}
