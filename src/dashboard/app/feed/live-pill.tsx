import { useEffect, useState } from 'preact/hooks'
import { toLabel, toPill, type Pill } from '../live/pill.ts'
import { toClockTime } from '../time.ts'
import type { Feed } from './feed.ts'

const HINTS: Partial<Record<Pill['kind'], string>> = {
  live: 'Pause',
  paused: 'Resume',
  reconnecting: 'Retry now',
  offline: 'Retry now',
  rejected: 'Retry',
}

interface PillOptions {
  pill: Pill
  onRetry(): void
  onPause?(): void
  onResume?(): void
}

/** The state of a feed, as a button that pauses, resumes or retries. */
export function LivePill({ feed, onResume }: { feed: Feed; onResume(): void }) {
  return (
    <ConnectionPill
      pill={toPill(feed.live.value)}
      onRetry={feed.reconnect}
      onPause={() => feed.dispatch({ type: 'pause', reason: 'manual' })}
      onResume={onResume}
    />
  )
}

/** The state of a live connection. */
export function ConnectionPill({ pill, onRetry, onPause, onResume }: PillOptions) {
  const { kind } = pill
  const nowMs = useSeconds(kind === 'reconnecting')
  const act =
    kind === 'live' ? onPause : kind === 'paused' ? onResume : HINTS[kind] ? onRetry : undefined
  const hint = act && HINTS[kind]
  return (
    <button
      type="button"
      class={`pill pill-${kind}`}
      aria-disabled={!act}
      onClick={act}
      title={hint}
    >
      <span class="pill-dot" aria-hidden="true" />
      <span>{toLabel(pill, nowMs, toClockTime)}</span>
      {hint && kind !== 'live' && <span class="pill-hint">{hint}</span>}
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
