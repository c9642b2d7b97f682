import { useLocation } from 'preact-iso'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { toUsersPath } from '../paths.ts'
import { request } from '../request.ts'
import { toPlural } from '../plural.ts'
import { Section } from '../components/section.tsx'

/** Erases a user permanently. */
export function EraseUser({ project, userId }: { project: string; userId: string }) {
  const { route } = useLocation()
  return (
    <Section id="erase" title="Erase">
      <p class="note">Deletes the properties and aliases, and removes the user from all events.</p>
      <ConfirmButton
        action="Erase this user"
        title="Erase"
        name={userId}
        lead="The events remain, but no longer show who they are about. This cannot be undone."
        yes="Erase permanently"
        send={() =>
          request('DELETE /api/projects/:projectId/users/:userId', { projectId: project, userId })
        }
        onDone={({ events, exportedMonths }) => {
          const files = exportedMonths ? ` Also in exports of ${exportedMonths}.` : ''
          showToast({
            message: `User erased and removed from ${toPlural(events, 'event')}.${files}`,
          })
          route(toUsersPath(project), true)
        }}
      />
    </Section>
  )
}
