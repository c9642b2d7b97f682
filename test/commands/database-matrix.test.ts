import { expect, test } from 'bun:test'
import { SERVER_ROLE } from '../../src/database/embedded/cluster.ts'
import { runApiTests } from '../support/api-tests.ts'
import { HOSTILE, HOSTILE_BUT_LEFT } from '../support/hostile-settings.ts'
import {
  hasDebianPostgres,
  hasEnUs,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { FOREIGN } from '../support/servers/postgres.ts'
import { scaled } from '../support/until.ts'

/** With LC_CTYPE C, PostgreSQL 15 knows no upper case of letters beyond ASCII. */
const WORDS = ['log/channels/channels', 'log/events/search-text', 'log/identities/users.search']
/** Writing, reading, times, names and keys; and what a locale changes. */
const FILES = {
  C: [
    ...['log/events/append', 'log/events/search-filters', 'log/events/search-query'],
    ...['log/identities/identify', 'log/identities/users', 'log/events/histogram'],
    ...['access/keys/key-routes', 'log/views/views', 'http/exact-json', 'contract/2-time-zone'],
    ...WORDS,
  ],
  en_US: WORDS,
}
/** Plans. They differ up to PostgreSQL 16, where an order can hide the index of a list of keys. */
const PLANS = ['log/events/read.plans', 'delivery/outbox/claims.plans', 'delivery/outbox/targets']
/** Random cases of a property. Locales change characters, not combinations of filters. */
const CASES = '10'
const isThere = hasDebianPostgres()

test.each(isThere ? (['C', 'en_US'] as const).filter(locale => locale === 'C' || hasEnUs()) : [])(
  "the API passes its tests on Debian's PostgreSQL 15 in the locale %s with hostile settings of the role",
  async locale => {
    await using postgres = await startDebianPostgres({ locale })
    for (const [name, value] of Object.entries({ ...HOSTILE, ...HOSTILE_BUT_LEFT })) {
      await postgres.admin.unsafe(`alter role ${SERVER_ROLE} set ${name} = '${value}'`)
    }
    const output = await runApiTests(FILES[locale], {
      [FOREIGN]: postgres.superuserUrl,
      TIDINGS_FUZZ: CASES,
    })
    expect(output).toMatch(/^ 0 fail$/m)
  },
  scaled(300_000),
)

test.if(isThere)(
  "no plan of Debian's PostgreSQL 15 reads more rows than it needs",
  async () => {
    await using postgres = await startDebianPostgres()
    const output = await runApiTests(PLANS, { [FOREIGN]: postgres.superuserUrl })
    expect(output).toMatch(/^ 0 fail$/m)
  },
  scaled(300_000),
)
