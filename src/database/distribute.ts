import citusFunctions from './citus-functions.sql' with { type: 'text' }
import { toArray } from './arrays.ts'
import { fixSearchPath, keepSearchPath } from './tables.ts'
import { connect, type Queryable, type Sql, type Tx } from './sql.ts'

/**
 * The tables that are spread over the nodes by their project_id. All rows of a project are on one
 * node. All other tables stay on the coordinator.
 */
export const DISTRIBUTED: readonly string[] = [
  'event_logs',
  'events',
  'channels',
  'event_counts',
  'event_segments',
  'idempotency_keys',
  'identities',
  'aliases',
  'alias_changes',
  'search_cursors',
  'search_parts',
  'event_tokens',
  'stale_segments',
  'user_words',
  'unindexed_users',
  'erasures',
  'erasure_names',
  'erased_users',
  'erased_names',
  'threads',
  'thread_events',
  'storms',
  'acknowledgements',
]

/** append_batch, and the functions that it calls with rows of projects. */
const APPEND = ['append_batch', 'append_threads', 'storm_telling']

/** Functions that run on the node of the project that is their first argument. */
const DELEGATED = [
  'append_batches',
  'list_events',
  'texts_of_events',
  'find_event',
  'count_unread',
  'newest_of_channel',
  'oldest_event_at',
  'find_token_candidates',
  'user_seen_times',
  'user_activity',
]

/** Returns whether the tables of the database are spread over the nodes of Citus. */
export async function isDistributed(sql: Queryable): Promise<boolean> {
  const [found] = await sql<[{ has_citus: boolean }]>`
    select to_regclass('pg_dist_partition') is not null and to_regclass('event_logs') is not null as has_citus
  `
  if (!found.has_citus) return false
  const tables = await sql`
    select from pg_dist_partition where logicalrelid = 'event_logs'::regclass
  `
  return tables.count > 0
}

/** Throws unless the database at `url` has Citus, worker nodes, and no servers. */
export function checkCitus(url: string): Promise<void> {
  return withConnection(url, async sql => {
    const [citus] = await sql`select from pg_extension where extname = 'citus'`
    if (!citus) {
      throw new Error(
        'The database has no Citus. Run `create extension citus` in it, on the coordinator and on each worker node. Nothing was changed.',
      )
    }
    const [nodes] = await sql<[{ workers: number }]>`
      select count(*)::int as workers from pg_dist_node where noderole = 'primary' and groupid <> 0
    `
    if (nodes.workers === 0) {
      throw new Error(
        'Citus has no worker nodes. Add them with `select citus_add_node(…)`. Nothing was changed.',
      )
    }
    const servers = await sql`
      select from pg_stat_activity
      where datname = current_database() and application_name like 'tidings %' and pid <> pg_backend_pid()
      limit 1
    `
    if (servers.count > 0) {
      throw new Error(
        'A server or a command uses the database. Stop every server, and try again. Nothing was changed.',
      )
    }
  })
}

/**
 * Spreads the tables of projects over the worker nodes of Citus. A database that is distributed
 * gets the functions of the current schema again.
 */
export function distribute(url: string): Promise<void> {
  return withConnection(url, async sql => {
    await sql.begin(async tx => {
      // First, because Citus takes a function with a parsed body for a part of the tables that it
      // reads.
      await adaptFunctions(tx)
      if (await isDistributed(tx)) return
      await spreadTables(tx)
      await copyAppend(tx)
    })
    await shareFunctions(sql)
  })
}

async function withConnection(url: string, work: (sql: Sql) => Promise<void>): Promise<void> {
  const settings = { statement_timeout: 0, lock_timeout: 0 }
  const sql = connect(url, { name: 'distribute', max: 1, settings })
  try {
    await work(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function spreadTables(tx: Tx): Promise<void> {
  await tx.unsafe(`
    set local client_min_messages = warning;
    drop trigger events_cancel_deliveries on events;
  `)
  // Citus accepts no identity column. A sequence of the same name continues it.
  const [next] = await tx<[{ id: string }]>`
    select nextval(pg_get_serial_sequence('alias_changes', 'id'))::text as id
  `
  await tx.unsafe(`
    alter table alias_changes alter column id drop identity;
    create sequence alias_changes_id_seq owned by alias_changes.id start ${BigInt(next.id)};
    alter table alias_changes alter column id set default nextval('alias_changes_id_seq');
    alter table erased_names drop constraint erased_names_erased_user_id_fkey;
    alter table erased_users drop constraint erased_users_pkey, add primary key (id, project_id);
    alter table erased_names add constraint erased_names_erased_user_id_fkey
      foreign key (erased_user_id, project_id) references erased_users (id, project_id) on delete cascade;
  `)
  const keys = await tx<{ table: string; name: string; definition: string; stays: boolean }[]>`
    select
      conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition,
      conrelid::regclass::text = any(${toArray(DISTRIBUTED)}::text[]) and confrelid::regclass::text = any(${toArray(DISTRIBUTED)}::text[]) as stays
    from pg_constraint
    where contype = 'f'
      and (conrelid::regclass::text = any(${toArray(DISTRIBUTED)}::text[]) or confrelid::regclass::text = any(${toArray(DISTRIBUTED)}::text[]))
  `
  // Citus accepts no foreign key between a table on the coordinator and one on the nodes.
  for (const { table, name } of keys)
    await tx.unsafe(`alter table ${table} drop constraint ${name}`)
  for (const [nth, table] of DISTRIBUTED.entries()) {
    const options = nth === 0 ? 'shard_count => 32' : `colocate_with => '${DISTRIBUTED[0]}'`
    await tx.unsafe(`select create_distributed_table('${table}', 'project_id', ${options})`)
  }
  for (const { table, name, definition } of keys.filter(({ stays }) => stays))
    await tx.unsafe(`alter table ${table} add constraint ${name} ${definition}`)
}

interface SqlFunction {
  signature: string
  name: string
  args: string
  result: string
  is_set: boolean
  volatility: string
  body: string
}

/**
 * Adapts functions to Citus: it plans no generic plan, and no SQL function with parameters. So
 * functions plan as they run, and those that read distributed tables become PL/pgSQL.
 */
export async function adaptFunctions(tx: Tx): Promise<void> {
  await tx.unsafe('set local client_min_messages = warning')
  await fixSearchPath(tx)
  await tx.unsafe(citusFunctions)
  const pattern = `\\m(from|join|into|update)\\s+(${DISTRIBUTED.join('|')})\\M`
  const found = await tx<SqlFunction[]>`
    select
      p.oid::regprocedure::text as signature, p.proname as name,
      pg_get_function_arguments(p.oid) as args, pg_get_function_result(p.oid) as result,
      p.proretset as is_set, p.provolatile as volatility,
      coalesce(nullif(p.prosrc, ''), pg_get_function_sqlbody(p.oid)) as body
    from pg_proc p
      join pg_language l on l.oid = p.prolang and l.lanname = 'sql'
    where p.pronamespace = quote_ident(current_schema())::regnamespace and (
      coalesce(nullif(p.prosrc, ''), pg_get_function_sqlbody(p.oid)) ~* ${pattern}
      -- A parsed body can have the rows of a table from another function.
      or exists (
        select
        from pg_depend d
        where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass
          and d.refobjid::regclass::text = any(${toArray(DISTRIBUTED)}::text[])
      )
    )
  `
  for (const one of found) await tx.unsafe(toPlpgsql(one))
  const settings = await tx<{ signature: string }[]>`
    select p.oid::regprocedure::text as signature
    from pg_proc p
    where p.pronamespace = quote_ident(current_schema())::regnamespace
      and array_to_string(p.proconfig, ' ') like '%plan_cache_mode=force_generic_plan%'
  `
  for (const { signature } of settings)
    await tx.unsafe(`alter function ${signature} reset plan_cache_mode`)
  // A query that Citus sends to a node may call these functions there.
  const nested = await tx<{ signature: string }[]>`
    select p.oid::regprocedure::text as signature
    from pg_proc p
    where p.pronamespace = quote_ident(current_schema())::regnamespace and p.proname = any(${toArray(DELEGATED)}::text[])
  `
  for (const { signature } of nested)
    await tx.unsafe(`alter function ${signature} set citus.allow_nested_distributed_execution = on`)
  await copyAppend(tx)
  await keepSearchPath(tx)
  // Statements over all projects are rare, and not worth a connection to a node for each shard.
  const [{ database }] = await tx<[{ database: string }]>`
    select quote_ident(current_database()) as database
  `
  await tx.unsafe(`alter database ${database} set citus.max_adaptive_executor_pool_size = 1`)
}

/** Lets the worker nodes have the functions, and run those of one project where its rows are. */
export async function shareFunctions(sql: Sql): Promise<void> {
  const functions = await sql<{ signature: string; argument: string | null }[]>`
    select
      p.oid::regprocedure::text as signature,
      case when p.proname = any(${toArray(DELEGATED)}::text[]) then p.proargnames[1] end as argument
    from pg_proc p
    where p.pronamespace = quote_ident(current_schema())::regnamespace and p.prokind = 'f'
      and p.prorettype <> 'trigger'::regtype
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  `
  for (const { signature, argument } of functions) {
    const placed = argument ? `, '${argument}', colocate_with => '${DISTRIBUTED[0]}'` : ''
    await sql.unsafe(`select create_distributed_function('${signature}'${placed})`)
  }
}

/**
 * Makes a copy of append_batch, and of what it calls, for each shard, with the tables of the shard.
 * Postgres runs it as elsewhere: Citus, which plans each statement anew, has no part in it.
 */
async function copyAppend(tx: Tx): Promise<void> {
  const copied = await tx<{ name: string; definition: string }[]>`
    select f as name, pg_get_functiondef(f::regproc) as definition
    from unnest(${toArray(APPEND)}::text[]) as f
  `
  const shards = await tx<{ log_id: string; ids: Record<string, string> }[]>`
    select
      min(s.shardid) filter (where s.logicalrelid = 'event_logs'::regclass) as log_id,
      json_object_agg(s.logicalrelid::text, s.shardid) as ids
    from pg_dist_shard s
    where s.logicalrelid::text = any(${toArray(DISTRIBUTED)}::text[])
    group by s.shardminvalue
  `
  const tables = new RegExp(`\\b(from|join|into|update)(\\s+)(${DISTRIBUTED.join('|')})\\b`, 'g')
  const calls = new RegExp(`\\b(${APPEND.join('|')})\\(`, 'g')
  const copies = shards.flatMap(shard => copied.map(one => ({ ...shard, ...one })))
  for (const { log_id: logId, ids, name, definition } of copies) {
    await tx.unsafe(
      definition
        .replace(calls, `$1_${logId}(`)
        // The coordinator has the quotas, and takes the channels before.
        .replace(/take_channels\([^;]*;/, "'{}';")
        // It has the timers, too, whose steps see that a thread has ended.
        .replace(/perform cancel_timers\([^;]*;/, 'null;')
        .replace(tables, (_, keyword, space, table) => `${keyword}${space}${table}_${ids[table]}`),
    )
    await tx.unsafe(`alter function ${name}_${logId} set plan_cache_mode = force_generic_plan`)
  }
}

const VOLATILITY: Record<string, string> = { i: 'immutable', s: 'stable', v: 'volatile' }

function toPlpgsql({ name, args, result, is_set: isSet, volatility, body }: SqlFunction): string {
  const text = body
    .trim()
    .replace(/^BEGIN ATOMIC\s([\s\S]*)\sEND$/, '$1')
    .trim()
    .replace(/^RETURN\s/, 'select ')
    .replace(/;$/, '')
  const statement = result === 'void' ? text : isSet ? `return query ${text}` : `return (${text})`
  return `
    create or replace function ${name}(${args}) returns ${result}
    language plpgsql ${VOLATILITY[volatility]}
    set citus.allow_nested_distributed_execution = on
    as $body$
    #variable_conflict use_column
    begin
      ${statement};
    end
    $body$
  `
}
