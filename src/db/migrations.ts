import accounts from '../../sql/0001_accounts.sql' with { type: 'text' }
import identities from '../../sql/0002_identities.sql' with { type: 'text' }
import events from '../../sql/0003_events.sql' with { type: 'text' }
import limits from '../../sql/0005_limits.sql' with { type: 'text' }
import people from '../../sql/0006_people.sql' with { type: 'text' }
import reading from '../../sql/0007_reading.sql' with { type: 'text' }
import settings from '../../sql/0008_settings.sql' with { type: 'text' }
import organizations from '../../sql/0009_organizations.sql' with { type: 'text' }
import signIn from '../../sql/0010_sign_in.sql' with { type: 'text' }
import feed from '../../sql/0011_feed.sql' with { type: 'text' }
import webhooks from '../../sql/0012_webhooks.sql' with { type: 'text' }
import outbox from '../../sql/0013_outbox.sql' with { type: 'text' }
import push from '../../sql/0014_push.sql' with { type: 'text' }
import attempts from '../../sql/0015_attempts.sql' with { type: 'text' }
import append from '../../sql/0016_append.sql' with { type: 'text' }
import clock from '../../sql/0018_clock.sql' with { type: 'text' }
import hostileText from '../../sql/0020_hostile_text.sql' with { type: 'text' }

export interface Migration {
  name: string
  text: string
}

/** All of /sql in order, as text inside the program. */
export const MIGRATIONS: readonly Migration[] = [
  { name: '0001_accounts', text: accounts },
  { name: '0002_identities', text: identities },
  { name: '0003_events', text: events },
  { name: '0005_limits', text: limits },
  { name: '0006_people', text: people },
  { name: '0007_reading', text: reading },
  { name: '0008_settings', text: settings },
  { name: '0009_organizations', text: organizations },
  { name: '0010_sign_in', text: signIn },
  { name: '0011_feed', text: feed },
  { name: '0012_webhooks', text: webhooks },
  { name: '0013_outbox', text: outbox },
  { name: '0014_push', text: push },
  { name: '0015_attempts', text: attempts },
  { name: '0016_append', text: append },
  { name: '0018_clock', text: clock },
  { name: '0020_hostile_text', text: hostileText },
]
