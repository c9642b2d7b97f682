import type { Config } from '../../base/config.ts'
import { NIL_UUID } from '../../base/ids.ts'
import type { Sql } from '../../database/sql.ts'
import { ok, warning, type Finding } from './finding.ts'

/** A month is exported some time after its end. */
const LATE_DAYS = 40
const MAX_CHANNELS = 100_000

/** Tells of events that retention keeps because no export has written them. */
export async function checkExport(
  sql: Sql,
  { retentionNeedsExport }: Pick<Config, 'retentionNeedsExport'>,
): Promise<Finding[]> {
  if (!retentionNeedsExport) return []
  const [row] = await sql<[{ projects: number }]>`
    select count(distinct project_id)::int as projects
    from channels_with_retention(${NIL_UUID}, ${NIL_UUID}, ${MAX_CHANNELS})
    where late_s > ${LATE_DAYS * 86_400}
  `
  return [
    row.projects === 0
      ? ok('export', 'Retention waits for no export')
      : warning(
          'export',
          `Expired events of ${row.projects} projects are kept, because they are not exported. Check the timer of \`tidings export\`.`,
        ),
  ]
}
