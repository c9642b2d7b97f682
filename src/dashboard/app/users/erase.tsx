import { useLocation } from 'preact-iso'
import { Sure } from '../parts/sure.tsx'
import { tell } from '../parts/undo.tsx'
import { toUsersPath } from '../paths.ts'
import { eraseUser, type User } from './calls.ts'

/** The way to erase a user for good. */
export function Erase({ project, user }: { project: string; user: User }) {
  const { route } = useLocation()
  return (
    <section class="part" aria-labelledby="erase">
      <h2 id="erase">Erase</h2>
      <p class="aside">
        Properties and aliases go, and the events stay without a name. It cannot be undone.
      </p>
      <Sure
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
          tell({ said: `Erased, and taken out of ${events.toLocaleString()} events.` })
          route(toUsersPath(project), true)
        }}
      />
    </section>
  )
}
