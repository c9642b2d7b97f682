import { useEffect, useState } from 'preact/hooks'
import { toLabel, toPill, type Pill } from '../live/pill.ts'
import { toClockTime } from '../time.ts'
import type { Feed } from './feed.ts'

const HINTS: Partial<Record<Pill['kind'], string>> = {
  live: 'Pause',
  paused: 'Resume',
  reconnecting: 'Retry now',
  offline: 'Retry now',
}

/** The state of the live connection, as a button that pauses, resumes or retries. */
export function LivePill({ feed, onResume }: { feed: Feed; onResume(): void }) {
  const pill = toPill(feed.live.value)
  const nowMs = useSeconds(pill.kind === 'reconnecting')
  const act = {
    live: () => feed.dispatch({ type: 'pause', reason: 'manual' }),
    paused: onResume,
    reconnecting: feed.reconnect,
    offline: feed.reconnect,
    connecting: undefined,
    signed_out: undefined,
    refused: undefined,
  }[pill.kind]
  const hint = HINTS[pill.kind]
  return (
    <button
      type="button"
      class={`pill pill-${pill.kind}`}
      aria-disabled={!act}
      onClick={act}
      title={hint}
    >
      <span class="pill-dot" aria-hidden="true" />
      <span>{toLabel(pill, nowMs, toClockTime)}</span>
      {hint !== undefined && pill.kind !== 'live' && <span class="pill-hint">{hint}</span>}
    </button>
  )
}

/** The current time, updated every second while it is needed. */
function useSeconds(isNeeded: boolean): number {
  const [nowMs, setNowMs] = useState(Date.now())
  useEffect(() => {
    if (!isNeeded) return
    setNowMs(Date.now())
    const timer = setInterval(() => setNowMs(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isNeeded])
  return nowMs
}
