import { logger } from '../../base/log.ts'
import type { Tx } from '../../database/sql.ts'
import { parseSearch } from '../events/search-query.ts'

const log = logger('views')
/** The number of views and cards that one start names. */
const MAX_NAMED = 100

/**
 * Turns the tables of 0.3.0 into cards of top values, and names them in the log. Also names the
 * views and cards whose search has `alike:`, until somebody changes them: they find nothing.
 */
export async function nameRemovedTerms(tx: Tx): Promise<void> {
  const rows = await tx<Record<'organization' | 'project' | 'kind' | 'name' | 'search', string>[]>`
    with tables as (
      update insight_cards set kind = 'top' where kind = 'table'
      returning project_id, 'table' as kind, coalesce(title, 'number ' || position) as name, search
    ), found as (
      select * from tables
      union all
      select project_id, 'card', coalesce(title, 'number ' || position), search
      from insight_cards
      where search ilike '%alike:%'
      union all
      select project_id, 'view', name, search from views where search ilike '%alike:%'
    )
    select o.name as organization, p.name as project, f.kind, f.name, f.search
    from found f
      join projects p on p.id = f.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
    order by 1, 2, 3, 4
  `
  const named = rows.filter(
    ({ kind, search }) =>
      kind === 'table' || parseSearch(search).issues.some(({ problem }) => problem === 'removed'),
  )
  for (const { kind, name, project, organization } of named.slice(0, MAX_NAMED)) {
    const where = `of the project ${project} of ${organization}`
    log.warning('{what}', {
      what:
        kind === 'table'
          ? `The card ${name} ${where} was a table. It shows the top values now.`
          : `The ${kind} ${name} ${where} finds nothing: its search has alike:, which was removed. Change or delete it.`,
    })
  }
  const more = named.length - MAX_NAMED
  if (more > 0) log.warning('{more} more views and cards were tables or have alike:', { more })
}
