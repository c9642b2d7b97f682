import { useLocation } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import { readStored } from '../storage.ts'
import { LoadingPage, StandalonePage } from '../components/standalone-page.tsx'
import { useQuery } from '../components/query.tsx'
import { PATHS, toEventPath } from '../paths.ts'
import { request, toFailure, type Failure, type Result } from '../request.ts'
import type { AccountPageProps } from './props.ts'

/** Finds the project of an event link without one, and redirects there. */
export default function EventRedirect({ account, event = '' }: AccountPageProps) {
  const { route } = useLocation()
  const kept = readStored('project')
  const projects = account.organizations
    .flatMap(({ projects }) => projects.map(({ id }) => id))
    .sort((one, other) => Number(other === kept) - Number(one === kept))
  const { data, failure } = useQuery(event, () => findProject(projects, event))
  useEffect(() => {
    if (data !== undefined) route(toEventPath(data, event), true)
  }, [data])
  if (!failure) return <LoadingPage />
  const isMissing = failure.code === 'not_found'
  return (
    <StandalonePage
      title={isMissing ? 'Event not found' : "Couldn't load event"}
      lead={
        isMissing
          ? 'It was deleted, has expired, or you do not have access to it.'
          : failure.message
      }
    >
      <p>
        <a href={PATHS.home}>Go to the feed</a>
      </p>
    </StandalonePage>
  )
}

/** Returns the first of the projects that has the event, or else the worst failure. */
async function findProject(projects: readonly string[], eventId: string): Promise<Result<string>> {
  let failure: Failure = toFailure({ code: 'not_found', message: '' })
  for (const projectId of projects) {
    const place = { projectId, eventId }
    const result = await request('GET /api/projects/:projectId/events/:eventId', place)
    if (result.ok) return { ok: true, data: projectId }
    if (result.failure.code !== 'not_found') failure = result.failure
    if (failure.code === 'unreachable') break
  }
  return { ok: false, failure }
}
