import { connect, type ConnectOptions, type Sql } from '../../src/database/sql.ts'

/** Connects a test to a database, with the session of a server. */
export function openSql(
  url: string,
  { max = 1, settings }: Partial<Pick<ConnectOptions, 'max' | 'settings'>> = {},
): Sql & AsyncDisposable {
  const sql = connect(url, {
    ...{ name: 'test', max },
    settings: { statement_timeout: 60_000, lock_timeout: 60_000, ...settings },
  })
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) })
}
