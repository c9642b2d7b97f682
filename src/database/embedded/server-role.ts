import { connect } from '../sql.ts'
import { SERVER_ROLE, SUPERUSER } from './cluster.ts'

/**
 * Creates the server's role with this password when absent, and makes it the owner of the database
 * and of everything in the public schema. `url` is that of the superuser.
 */
export async function ensureServerRole(url: string, password: string): Promise<void> {
  const sql = connect(url, { name: 'roles', max: 1, settings: { statement_timeout: 0 } })
  try {
    // base64url has no character that a literal would need to escape.
    await sql.unsafe(`
      do $$
      declare
        statement text;
      begin
        if to_regrole('${SERVER_ROLE}') is null then
          create role ${SERVER_ROLE} login password '${password}';
        end if;
        -- For the metrics, which show the size of the WAL.
        grant pg_monitor to ${SERVER_ROLE};
        for statement in ${LIST_TRANSFERS} loop
          execute statement;
        end loop;
      end $$
    `)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Lists the statements that transfer what the superuser owns, as after a copy of a cluster. */
const LIST_TRANSFERS = `
  with owned as (
    select 'database' as kind, quote_ident(datname) as name
    from pg_database
    where datname = current_database() and datdba = '${SUPERUSER}'::regrole
    union all
    select
      case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' else 'table' end,
      oid::regclass::text
    from pg_class c
    where relnamespace = 'public'::regnamespace and relowner = '${SUPERUSER}'::regrole
      and relkind in ('r', 'p', 'v', 'm', 'S')
      -- A sequence of a column has the owner of its table.
      and not exists (
        select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')
          and c.relkind = 'S'
      )
    union all
    select 'routine', oid::regprocedure::text
    from pg_proc
    where pronamespace = 'public'::regnamespace and proowner = '${SUPERUSER}'::regrole
    union all
    select 'type', t.oid::regtype::text
    from pg_type t
      left join pg_class c on c.oid = t.typrelid
    where t.typnamespace = 'public'::regnamespace and t.typowner = '${SUPERUSER}'::regrole
      and (t.typtype in ('d', 'e', 'r') or c.relkind = 'c')
  )
  select format('alter %s %s owner to ${SERVER_ROLE}', kind, name) from owned
`
