import { effect } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { createThrottle } from '../live/throttle.ts'
import { accountId } from '../request.ts'
import { session } from '../session.ts'
import { forget, readStored, store } from '../storage.ts'
import type { Feed } from './feed.ts'
import type { Row } from './log.ts'

const KEEP_MS = 5_000
const MAX_KEPT = 50
const MAX_AGE_MS = 7 * 24 * 3_600_000
/** The prefix of the names under which the events of each project are stored. */
const PREFIX = 'events.'

/** The name under which the account that saw the events is stored. */
const OWNER = `${PREFIX}account`

// They are private, so they end with the session, and are never those of another account.
effect(() => {
  const { value } = session
  const owner = value.kind === 'signed_in' && value.account.person.id
  if (value.kind === 'signed_out' || (owner && owner !== readStored(OWNER))) forget(PREFIX)
  if (owner) store(OWNER, owner)
})

/** Keeps the newest rows of a feed in this browser, to show them without a network. */
export function useLastEvents(project: string, feed: Feed, isWhole: boolean): void {
  useEffect(() => {
    if (!isWhole) return
    const keeping = createThrottle(SYSTEM_CLOCK, KEEP_MS, () => {
      // The session may have ended, here or in another tab.
      if (accountId === '' || accountId !== readStored(OWNER)) return
      store(PREFIX + project, JSON.stringify(feed.log.value.rows.slice(0, MAX_KEPT)))
    })
    const end = feed.log.subscribe(({ rows }) => {
      // After the rows are drawn.
      if (rows.length > 0) setTimeout(keeping.trigger)
    })
    return () => {
      end()
      keeping.flush()
    }
  }, [feed])
}

/** The last events of a project that this browser showed in the last seven days, newest first. */
export function readLastEvents(project: string): Row[] {
  try {
    // Only `useLastEvents` writes it.
    const rows = JSON.parse(readStored(PREFIX + project) ?? '[]') as Row[]
    return rows.filter(({ receivedMs }) => receivedMs > Date.now() - MAX_AGE_MS)
  } catch {
    return [] // Another version has written it.
  }
}
