import { useLocation } from 'preact-iso'
import { useRef, useState } from 'preact/hooks'
import { confirmed } from '../parts/confirm.tsx'
import { tell } from '../parts/undo.tsx'
import { toUsersPath } from '../paths.ts'
import type { Failure } from '../request.ts'
import { eraseUser, type User } from './calls.ts'

/** The way to erase a user for good: asked twice, and for the password. */
export function Erase({ project, user }: { project: string; user: User }) {
  const { route } = useLocation()
  const dialog = useRef<HTMLDialogElement>(null)
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()

  async function erase() {
    if (isBusy) return
    setBusy(true)
    dialog.current?.close()
    const answer = await confirmed(() => eraseUser(project, user.userId))
    setBusy(false)
    if (!answer.ok) return setFailure(answer.failure)
    tell({ said: `Erased, and taken out of ${answer.data.events.toLocaleString()} events.` })
    route(toUsersPath(project), true)
  }

  return (
    <section class="part" aria-labelledby="erase">
      <h2 id="erase">Erase</h2>
      <p class="aside">
        Properties and aliases go, and the events stay without a name. It cannot be undone.
      </p>
      {failure && (
        <p role="alert" class="notice">
          {failure.message}
        </p>
      )}
      <button
        type="button"
        class="button button-bad"
        aria-disabled={isBusy}
        onClick={() => dialog.current?.showModal()}
      >
        Erase this person
      </button>
      <dialog ref={dialog} class="dialog" aria-labelledby="erase-sure">
        <h2 id="erase-sure">
          Erase <bdi>{user.userId}</bdi>?
        </h2>
        <p>Nobody will be able to tell who it was, and nothing brings it back.</p>
        <button type="button" class="button button-bad" onClick={erase}>
          Erase for good
        </button>
        <button type="button" class="quiet-button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
      </dialog>
    </section>
  )
}
