import { useLocation } from 'preact-iso'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { toUsersPath } from '../paths.ts'
import { eraseUser, type User } from './api.ts'

/** The way to erase a user for good. */
export function EraseUser({ project, user }: { project: string; user: User }) {
  const { route } = useLocation()
  return (
    <section class="section" aria-labelledby="erase">
      <h2 id="erase">Erase</h2>
      <p class="note">
        Properties and aliases go, and the events stay without a name. It cannot be undone.
      </p>
      <ConfirmButton
        action="Erase this person"
        title={
          <>
            Erase <bdi>{user.userId}</bdi>?
          </>
        }
        lead="Nobody will be able to tell who it was, and nothing brings it back."
        yes="Erase for good"
        send={() => eraseUser(project, user.userId)}
        onDone={({ events }) => {
          showToast({ message: `Erased, and taken out of ${events.toLocaleString()} events.` })
          route(toUsersPath(project), true)
        }}
      />
    </section>
  )
}
