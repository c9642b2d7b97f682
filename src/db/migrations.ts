import accounts from '../../sql/0001_accounts.sql' with { type: 'text' }
import identities from '../../sql/0002_identities.sql' with { type: 'text' }
import events from '../../sql/0003_events.sql' with { type: 'text' }
import limits from '../../sql/0005_limits.sql' with { type: 'text' }

export interface Migration {
  name: string
  text: string
}

/** All of /sql in order, as text inside the program. */
export const MIGRATIONS: readonly Migration[] = [
  { name: '0001_accounts', text: accounts },
  { name: '0002_identities', text: identities },
  { name: '0003_events', text: events },
  // 0004 is kept for deliveries.
  { name: '0005_limits', text: limits },
]
