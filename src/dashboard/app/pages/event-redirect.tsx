import { useLocation } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import { LoadingPage, StandalonePage } from '../components/standalone-page.tsx'
import { useRoute } from '../components/query.tsx'
import { PATHS, toEventPath } from '../paths.ts'
import type { AccountPageProps } from './props.ts'

/** Finds the project of an event link without one, and redirects there. */
export default function EventRedirect({ event = '' }: AccountPageProps) {
  const { route } = useLocation()
  const { data, failure } = useRoute('GET /api/events/:eventId/project', { eventId: event })
  const project = data?.id
  useEffect(() => {
    if (project) route(toEventPath(project, event), true)
  }, [project])
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
