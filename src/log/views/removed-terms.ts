import { logger } from '../../base/log.ts'
import type { Tx } from '../../database/sql.ts'
import { explainIssue } from '../events/search-explanation.ts'
import { parseSearch } from '../events/search-query.ts'

const log = logger('views')
/** The number of views and cards that one start names. */
const MAX_NAMED = 100

/**
 * Turns the tables of 0.3.0 into cards of top values, and names them in the log. Also names the
 * views and cards that find nothing, until somebody changes them: their search has `alike:`, or
 * `level:` or `state:` with another text than a level or state, which 0.3.0 searched as words.
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
      where search ~* 'alike:|level|state:'
      union all
      select project_id, 'view', name, search from views where search ~* 'alike:|level|state:'
    )
    select o.name as organization, p.name as project, f.kind, f.name, f.search
    from found f
      join projects p on p.id = f.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
    order by 1, 2, 3, 4
  `
  const named = rows.flatMap(({ kind, name, project, organization, search }) => {
    const [issue] = parseSearch(search).issues
    const subject = `${name} of the project ${project} of ${organization}`
    if (kind === 'table') return `The card ${subject} was a table. It shows the top values now.`
    if (!issue) return []
    return `The ${kind} ${subject} finds nothing: ${explainIssue(search, issue)}. Change or delete it.`
  })
  for (const what of named.slice(0, MAX_NAMED)) log.warning('{what}', { what })
  const more = named.length - MAX_NAMED
  if (more > 0) log.warning('{more} more views and cards were tables or find nothing', { more })
}
