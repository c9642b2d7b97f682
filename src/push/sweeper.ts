import { sweepOf, type Sweep } from '../limits/sweeper.ts'

/** What is over: bursts, and settings that mean nothing any more. */
export const PUSH_SWEEPS: readonly Sweep[] = [
  sweepOf('push_bursts', sql => sql`s.touched_at < now() - interval '1 day'`),
  sweepOf('channel_notifications', sql => sql`s.mute_until < now() - interval '1 hour'`),
]
