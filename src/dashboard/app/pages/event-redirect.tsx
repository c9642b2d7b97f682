import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import type { Event } from '../../../log/events/schema.ts'
import { toApiPath } from '../api-paths.ts'
import { readStored } from '../storage.ts'
import { LoadingPage, StandalonePage } from '../components/standalone-page.tsx'
import { PATHS, toEventPath } from '../paths.ts'
import { request, toFailure, type Failure } from '../request.ts'
import { session } from '../session.ts'

const MISSING = toFailure({
  code: 'not_found',
  message: 'It was deleted, has expired, or you do not have access to it.',
})

/** Finds the project of an event link without one, and redirects there. */
export default function EventRedirect({ event = '' }: { event?: string | undefined }) {
  const { route } = useLocation()
  const [failure, setFailure] = useState<Failure>()
  const { value } = session
  useEffect(() => {
    if (value.kind !== 'signed_in') return
    let isOver = false
    const kept = readStored('project')
    const projects = value.account.organizations
      .flatMap(({ projects }) => projects.map(({ id }) => id))
      .sort((one, other) => Number(other === kept) - Number(one === kept))
    const look = async () => {
      let worst: Failure | undefined
      for (const project of projects) {
        const path = `${toApiPath(project)}/events/${encodeURIComponent(event)}` as const
        const result = await request<Event>('GET', path)
        if (isOver) return
        if (result.ok) return route(toEventPath(project, event), true)
        if (result.failure.code !== 'not_found') worst = result.failure
        if (worst?.code === 'unreachable') break
      }
      setFailure(worst ?? MISSING)
    }
    void look()
    return () => {
      isOver = true
    }
  }, [event, value.kind])
  if (!failure) return <LoadingPage />
  return (
    <StandalonePage
      title={failure === MISSING ? 'Event not found' : "Couldn't load event"}
      lead={failure.message}
    >
      <p>
        <a href={PATHS.home}>Go to the feed</a>
      </p>
    </StandalonePage>
  )
}
