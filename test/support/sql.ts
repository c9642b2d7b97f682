import { connect, type ConnectOptions, type Sql } from '../../src/database/sql.ts'

/**
 * Connects a test to a database, with the session of a server. Only its limits are so long that no
 * busy machine reaches them.
 */
export function openSql(
  url: string,
  { max = 1, settings }: Partial<Pick<ConnectOptions, 'max' | 'settings'>> = {},
): Sql {
  return connect(url, {
    ...{ name: 'test', max },
    settings: { statement_timeout: 60_000, lock_timeout: 60_000, ...settings },
  })
}
