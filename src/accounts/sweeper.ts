import { sweepOf, type Sweep } from '../limits/sweeper.ts'
import { isExpired } from './sessions.ts'

/** What is over, table by table: sessions, links, browsers, failures, and what is kept for a time. */
export const ACCOUNT_SWEEPS: readonly Sweep[] = [
  sweepOf('sessions', sql => isExpired(sql)),
  sweepOf('setup_links', sql => sql`s.expires_at < now()`),
  sweepOf('reset_links', sql => sql`s.expires_at < now()`),
  sweepOf('invites', sql => sql`s.expires_at < now()`),
  // Browsers keep no cookie for longer.
  sweepOf('known_devices', sql => sql`s.last_used_at < now() - interval '400 days'`),
  // What is older delays nobody and counts no more.
  sweepOf('sign_in_failures', sql => sql`s.last_at < now() - interval '1 day'`),
  sweepOf('key_usage', sql => sql`s.hour < now() - interval '90 days'`),
  sweepOf('audit_log', sql => sql`s.at < now() - interval '1 year'`),
]
