import { batch, signal, type Signal } from '@preact/signals'
import type { Static } from '@sinclair/typebox'
import type { UserNames } from '../../../log/identities/user-schema.ts'
import { toApiPath } from '../api-paths.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { createThrottle } from '../live/throttle.ts'
import { request } from '../request.ts'

const READ_MS = 300
/** The server takes this many in one request. */
const MAX_READ = 100
/** Beyond this number, the names are forgotten and read again. */
const MAX_KEPT = 5_000

let project = ''
let names = new Map<string, Signal<string | undefined>>()
/** The users whose names are not read yet, the newest last. */
const wanted = new Set<string>()
const reading = createThrottle(SYSTEM_CLOCK, READ_MS, () => void read())

/**
 * The name of a user of a project; undefined until it is read, and if the user has none. The
 * component that reads it renders again when it is known.
 */
export function readUserName(of: string, userId: string): string | undefined {
  if (of !== project || names.size > MAX_KEPT) {
    project = of
    names = new Map()
    wanted.clear()
  }
  const known = names.get(userId)
  if (known) return known.value
  const name = signal<string>()
  names.set(userId, name)
  // After the rows of this task, so that one request has the users of all.
  if (wanted.size === 0) setTimeout(reading.trigger)
  wanted.add(userId)
  return name.value
}

async function read(): Promise<void> {
  const [from, into] = [project, names]
  const userIds = [...wanted].slice(-MAX_READ)
  for (const userId of userIds) wanted.delete(userId)
  if (userIds.length === 0) return
  const path = `${toApiPath(from)}/users/names` as const
  const result = await request<Static<typeof UserNames>>('POST', path, { userIds })
  if (result.ok)
    batch(() => {
      for (const { userId, name } of result.data.items) {
        const known = into.get(userId)
        if (known) known.value = name
      }
    })
  if (wanted.size > 0) reading.trigger()
}
