import { sweepOf, type Sweep } from '../limits/sweeper.ts'

/** What is over: records after 30 days, and dead letters after 90. */
export const OUTBOX_SWEEPS: readonly Sweep[] = [
  sweepOf('deliveries', sql => sql`s.at < now() - interval '30 days'`, { oldest: 'at' }),
  sweepOf('withheld', sql => sql`s.at < now() - interval '30 days'`, { oldest: 'at' }),
  sweepOf('dead_letters', sql => sql`s.at < now() - interval '90 days'`, { oldest: 'at' }),
]
