import { toId } from '../ids.ts'
import { findPlace, READERS, type Place } from './access.ts'
import { logFailure } from './failure.ts'
import { toFilter } from './filter.ts'
import type { Subscription } from './hub.ts'
import { toErrorMessage, toGap, toSubscribed } from './messages.ts'
import { readWords } from './read.ts'
import type { GapReason, Subscribe } from './schema.ts'
import type { Visit, VisitsOptions } from './visits.ts'

const MAX_STREAMS = 10
const RETRY_MS = 500

/** Brings a stream to where it goes on live. */
export type Replay = (subscription: Subscription, personId: string) => Promise<void>

/** Opens the stream that a client asks for; an earlier one of the same project has ended. */
export async function openStream(
  options: VisitsOptions,
  visit: Visit,
  { message, projectId }: { message: Subscribe; projectId: string },
): Promise<void> {
  const { hub } = options
  const { socket, streams } = visit
  const fail = (code: 'not_found' | 'too_many', text: string) => {
    streams.delete(projectId)
    socket.send(toErrorMessage(code, text, message.project))
  }
  if (streams.size >= MAX_STREAMS) return fail('too_many', `At most ${MAX_STREAMS} at a time`)
  const stream: { subscription: Subscription | undefined } = { subscription: undefined }
  streams.set(projectId, stream)
  // The client may have asked for something else meanwhile, or be gone.
  const isMeant = () => !visit.isOver && streams.get(projectId) === stream
  const found = await findAgain(options, visit, { message, projectId, isMeant })
  if (!isMeant() || !found) return

  const { place, words } = found
  if (!place || !READERS.includes(place.role)) return fail('not_found', 'No project has this id')
  const gap = findGap(message, place)
  const after = message.after ?? null
  const project = toId('prj', projectId)
  const subscription: Subscription = {
    socket,
    projectId,
    project,
    filter: toFilter(message.filters ?? {}, words),
    cursor: 0,
  }
  if (!hub.add(subscription, place.head)) {
    return fail('too_many', 'The project is followed with too many different filters')
  }
  stream.subscription = subscription
  // What is published from this moment on comes by itself; it may be a little behind what is stored.
  const position = hub.toPosition(projectId) ?? place.head
  const isFromNow = after === null || gap === 'epoch' || gap === 'ahead'
  const head = isFromNow ? position : Math.max(position, place.head)
  subscription.cursor = isFromNow ? position : after
  socket.send(toSubscribed(project, head, gap === undefined))
  if (gap) socket.send(toGap(project, gap, head))
  options.onStream(projectId)
  await options.replay(subscription, socket.data.personId)
}

/** Why what the client has and what it is sent do not meet. */
function findGap({ after, epoch }: Subscribe, place: Place): GapReason | undefined {
  if (after === null || after === undefined) return undefined
  if (epoch !== undefined && epoch !== place.epoch) return 'epoch'
  if (after > place.head) return 'ahead'
  return after > 0 && after < place.cut ? 'retention' : undefined
}

/** Asks the database until it answers, as long as somebody wants to know. */
async function findAgain(
  { pool }: VisitsOptions,
  { socket }: Visit,
  { message, projectId, isMeant }: { message: Subscribe; projectId: string; isMeant(): boolean },
): Promise<{ place: Place | undefined; words: string[] | undefined } | undefined> {
  const { sessionId } = socket.data
  const text = message.filters?.text
  while (isMeant()) {
    try {
      const words = text === undefined ? undefined : await pool.run(sql => readWords(sql, text))
      return { place: await pool.run(sql => findPlace(sql, { sessionId, projectId })), words }
    } catch (error) {
      logFailure('A stream could not be opened yet', error)
      await new Promise(resolve => setTimeout(resolve, RETRY_MS))
    }
  }
  return undefined
}
