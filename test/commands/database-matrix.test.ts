import { expect, test } from 'bun:test'
import { SERVER_ROLE } from '../../src/database/embedded/cluster.ts'
import { runApiTests } from '../support/api-tests.ts'
import { HOSTILE, HOSTILE_BUT_LEFT } from '../support/hostile-settings.ts'
import {
  hasDebianPostgres,
  hasEnUs,
  startDebianPostgres,
  type DebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { FOREIGN } from '../support/servers/postgres.ts'
import { scaled } from '../support/until.ts'

/** With LC_CTYPE C, PostgreSQL 15 knows no upper case of letters beyond ASCII. */
const WORDS = 'log/events/search-index.words'
/** Writing, times and words. */
const IN_C = ['log/events/append', 'contract/2-field-formats', WORDS]
/** Words, and names, whose order a locale changes. */
const IN_EN_US = [WORDS, 'log/channels/channels', 'log/identities/users.search']
/** Plans. They differ up to PostgreSQL 16, where an order can hide the index of a list of keys. */
const PLANS = ['log/events/read.plans', 'delivery/outbox/claims.plans', 'delivery/outbox/targets']
const isThere = hasDebianPostgres()

test.if(isThere)(
  "the API passes its tests on Debian's PostgreSQL 15 in the locale C with hostile settings of the role",
  async () => {
    await using postgres = await startDebianPostgres()
    for (const [name, value] of Object.entries({ ...HOSTILE, ...HOSTILE_BUT_LEFT })) {
      await postgres.admin.unsafe(`alter role ${SERVER_ROLE} set ${name} = '${value}'`)
    }
    expect(await runOn(postgres, IN_C)).toMatch(/^ 0 fail$/m)
  },
  scaled(300_000),
)

test.if(isThere)(
  "on Debian's PostgreSQL 15 in the locale en_US words and names are found, and no plan reads more rows than it needs",
  async () => {
    const hasLocale = hasEnUs()
    await using postgres = await startDebianPostgres({ locale: hasLocale ? 'en_US' : 'C' })
    const output = await runOn(postgres, [...(hasLocale ? IN_EN_US : []), ...PLANS])
    expect(output).toMatch(/^ 0 fail$/m)
  },
  scaled(300_000),
)

function runOn({ superuserUrl }: DebianPostgres, files: readonly string[]): Promise<string> {
  // Locales change characters, not combinations of filters: a property needs few random cases.
  return runApiTests(files, { [FOREIGN]: superuserUrl, TIDINGS_FUZZ: '10' })
}
