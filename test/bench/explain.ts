import postgres from 'postgres'
import type { Sql } from '../../src/database/sql.ts'
import { toSuperuserUrl } from '../support/servers/postgres.ts'

/** Prints how Postgres runs the statements of each query, including those inside functions. */
export async function explainOnce(
  databaseUrl: string,
  queries: [name: string, run: (sql: Sql) => Promise<unknown>][],
): Promise<void> {
  let plans: string[] = []
  // Only a superuser may load the module.
  const url = new URL(await toSuperuserUrl(databaseUrl))
  const path = `${url.searchParams.get('host')}/.s.PGSQL.5432`
  url.searchParams.delete('host')
  const sql = postgres(url.href, {
    path,
    max: 1,
    fetch_types: false,
    onnotice: ({ message = '' }) => plans.push(message),
    connection: { TimeZone: 'UTC' },
  })
  await sql.unsafe(`
    load 'auto_explain';
    set auto_explain.log_min_duration = 0;
    set auto_explain.log_analyze = on;
    set auto_explain.log_buffers = on;
    set auto_explain.log_timing = off;
    set auto_explain.log_nested_statements = on;
    set client_min_messages = log;
  `)
  for (const [name, run] of queries) {
    plans = []
    await run(sql)
    console.log(`\n--- ${name}`)
    for (const plan of plans.filter(text => text.startsWith('duration'))) console.log(toPlan(plan))
  }
  await sql.end()
}

/** Returns the plan without the statement. */
function toPlan(message: string): string {
  const lines = message.split('\n')
  const start = lines.findIndex(line => /\(cost=/.test(line))
  return [lines[0], ...lines.slice(start)].join('\n')
}
