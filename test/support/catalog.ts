import type { Sql } from '../../src/database/sql.ts'

/** Describes the objects of the schema, by kind and name. */
export async function readCatalog(sql: Sql): Promise<Map<string, string>> {
  const rows = await sql<{ name: string; definition: string }[]>`
    with ours as (
      select c.* from pg_class c where c.relnamespace = current_schema()::regnamespace
    )
    select 'function ' || p.oid::regprocedure as name, case
        when p.prokind = 'a' then (
          select format('%s %s %s', a.aggtransfn, a.aggtranstype::regtype, a.agginitval)
          from pg_aggregate a where a.aggfnoid = p.oid
        )
        else pg_get_functiondef(p.oid)
      end || coalesce(p.proacl::text, '') as definition
    from pg_proc p
    where p.pronamespace = current_schema()::regnamespace
    union all
    select 'trigger ' || t.tgname || ' of ' || t.tgrelid::regclass, pg_get_triggerdef(t.oid) || t.tgenabled::text
    from pg_trigger t
    where not t.tgisinternal
    union all
    select 'view ' || o.oid::regclass, pg_get_viewdef(o.oid) from ours o where o.relkind = 'v'
    union all
    select
      format('column %s of %s', a.attname, o.oid::regclass),
      format(
        '%s %s %s %s %s %s %s %s %s %s', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
        a.attgenerated, a.attcollation::regcollation, a.attstattarget, a.attoptions, a.attstorage,
        pg_get_expr(d.adbin, d.adrelid)
      )
    from ours o
      join pg_attribute a on a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = o.oid and d.adnum = a.attnum
    where o.relkind in ('r', 'v', 'c')
    union all
    select 'index ' || o.oid::regclass, pg_get_indexdef(o.oid) || coalesce(o.reloptions::text, '')
    from ours o where o.relkind = 'i'
    union all
    select
      format('%s %s', case o.relkind when 'r' then 'table' when 'S' then 'sequence' else 'relation' end, o.oid::regclass),
      format('%s %s %s', o.relpersistence, o.reloptions, o.relacl)
    from ours o where o.relkind <> 'i'
    union all
    select format('constraint %s of %s', r.conname, r.conrelid::regclass), pg_get_constraintdef(r.oid)
    from pg_constraint r
    where r.connamespace = current_schema()::regnamespace
    union all
    select 'type ' || t.oid::regtype, t.typtype::text
    from pg_type t
    where t.typnamespace = current_schema()::regnamespace and t.typelem = 0
    order by 1
  `
  // Each installation has a secret of its own.
  const hide = (text: string) => text.replace(/'\\x[0-9a-f]{64}'::bytea/, 'a secret')
  return new Map(rows.map(({ name, definition }) => [name, hide(definition)]))
}
