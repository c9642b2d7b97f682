import { connect } from '../sql.ts'
import { SERVER_ROLE } from './cluster.ts'

/**
 * Creates the server's role with this password when absent, and makes it the owner of the database.
 * `url` is that of the superuser.
 */
export async function ensureServerRole(url: string, password: string): Promise<void> {
  const sql = connect(url, { name: 'roles', max: 1, settings: { statement_timeout: 0 } })
  try {
    // base64url has no character that a literal would need to escape.
    await sql.unsafe(`
      do $$
      begin
        if to_regrole('${SERVER_ROLE}') is null then
          create role ${SERVER_ROLE} login password '${password}';
          execute format('alter database %I owner to ${SERVER_ROLE}', current_database());
        end if;
        -- For the metrics, which show the size of the WAL.
        grant pg_monitor to ${SERVER_ROLE};
      end $$
    `)
  } finally {
    await sql.end({ timeout: 1 })
  }
}
