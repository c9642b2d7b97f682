import { useLocation } from 'preact-iso'
import { Select } from '../components/fields.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { Loaded } from '../components/loaded.tsx'
import { SearchForm } from '../components/search-form.tsx'
import { MINUTE_MS, useQuery } from '../components/use-query.ts'
import { toExactText, toReaderText } from '../feed/reader-dates.ts'
import { readSearch, toQuery, toUrlQuery, type Search } from '../feed/search.ts'
import { AlikeTable } from '../insights/alike-table.tsx'
import { toPeriodName } from '../insights/card-texts.ts'
import { toProjectPath } from '../paths.ts'
import { request } from '../request.ts'
import type { ProjectPageProps } from './props.ts'

const PERIODS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }
const CHOSEN = 'chosen'

/** The matches of a search in groups of alike titles. */
export default function AlikePage({ account, project }: ProjectPageProps) {
  const { query, route } = useLocation()
  const search = toSearchInPeriod(readSearch(query))
  const alike = useQuery(
    JSON.stringify([project, search]),
    () =>
      request('GET /api/projects/:projectId/alike', {
        projectId: project,
        ...toQuery(search, Date.now()),
      }),
    { everyMs: MINUTE_MS },
  )
  const toPath = (changed: Partial<Search>) =>
    toProjectPath('alike', project) + toUrlQuery({ ...search, ...changed })
  const isNamed = search.to === undefined && Object.hasOwn(PERIODS, search.from ?? '')

  return (
    <ProjectLayout account={account} project={project} at="insights" title="Alike titles">
      <h1 class="page-title">Alike titles</h1>
      <p class="page-lead">
        Titles that differ in their numbers alone are one group. # stands for a number, a date or an
        ID.
      </p>
      <div class="alike-search">
        <SearchForm
          label="Search events"
          placeholder="All events"
          text={toReaderText(search.text)}
          toPath={typed => toPath({ text: toExactText(typed) })}
        />
        <Select
          name="period"
          label="Period"
          value={isNamed ? search.from : CHOSEN}
          options={[
            ...(isNamed ? [] : [{ value: CHOSEN, text: 'Chosen time' }]),
            ...Object.entries(PERIODS).map(([value, hours]) => ({
              value,
              text: toPeriodName(hours),
            })),
          ]}
          onChange={from => from !== CHOSEN && route(toPath({ from, to: undefined }), true)}
        />
      </div>
      <Loaded query={alike}>
        {titles => <AlikeTable project={project} search={search} titles={titles} />}
      </Loaded>
    </ProjectLayout>
  )
}

/** The search with a period: the last week, if it has none. */
function toSearchInPeriod(search: Search): Search {
  const { from, to } = search
  return from === undefined && to === undefined ? { ...search, from: '7d' } : search
}
