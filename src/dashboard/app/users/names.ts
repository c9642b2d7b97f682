import { toVisible } from '../../../base/display-text.ts'
import { batch, signal, type Signal } from '@preact/signals'
import { toBackoffMs, SYSTEM_CLOCK } from '../live/clock.ts'
import { createThrottle } from '../live/throttle.ts'
import { request } from '../request.ts'

const READ_MS = 300
/** A user without a name may soon be identified. */
const UNNAMED_MS = 60_000
const NAMED_MS = 600_000
/** The server takes this many in one request. */
const MAX_READ = 100
/** Beyond this number, the names are forgotten and read again. */
const MAX_KEPT = 5_000

interface Known {
  name: Signal<string | undefined>
  /** When the name was requested. */
  askedMs: number
}

let project = ''
let names = new Map<string, Known>()
let failures = 0
/** The users whose names are not read yet, the newest last. */
const wanted = new Set<string>()
const reading = createThrottle(SYSTEM_CLOCK, READ_MS, () => void read())

/**
 * The name of a user of a project; undefined until it is read, and if the user has none that can be
 * seen. The component that reads it renders again when it is known. An old name is requested again.
 */
export function readUserName(of: string, userId: string): string | undefined {
  if (of !== project || names.size > MAX_KEPT) {
    project = of
    names = new Map()
    wanted.clear()
  }
  const known = names.get(userId) ?? { name: signal<string>(), askedMs: -Infinity }
  const { name } = known
  names.set(userId, known)
  const nowMs = SYSTEM_CLOCK.now()
  // The clock may have been set back.
  const ageMs = Math.abs(nowMs - known.askedMs)
  if (ageMs > (name.peek() === undefined ? UNNAMED_MS : NAMED_MS)) {
    known.askedMs = nowMs
    // After the rows of this task, so that one request has the users of all.
    if (wanted.size === 0) setTimeout(reading.trigger)
    wanted.add(userId)
  }
  return name.value
}

async function read(): Promise<void> {
  const [from, into] = [project, names]
  const userIds = [...wanted].slice(-MAX_READ)
  for (const userId of userIds) wanted.delete(userId)
  if (userIds.length === 0) return
  const input = { projectId: from, userIds }
  const result = await request('POST /api/projects/:projectId/users/names', input)
  failures = result.ok ? 0 : failures + 1
  if (result.ok) {
    const found = new Map(result.data.items.map(({ userId, name }) => [userId, name]))
    batch(() => {
      for (const userId of userIds)
        into.get(userId)!.name.value = toVisible(found.get(userId)) || undefined
    })
  } else {
    const { code, retryAfterS } = result.failure
    if (into === names && (code === 'unreachable' || retryAfterS !== undefined)) {
      for (const userId of userIds) wanted.add(userId)
      SYSTEM_CLOCK.after(toBackoffMs(failures, Math.random, retryAfterS), reading.trigger)
      return
    }
  }
  if (wanted.size > 0) reading.trigger()
}
