import { useLayoutEffect, useRef } from 'preact/hooks'
import { Checkbox } from '../components/fields.tsx'
import { Cancel, Field, Form } from '../components/form.tsx'
import { showToast } from '../components/toast.tsx'
import { toReaderText } from '../feed/reader-dates.ts'
import { viewChanges } from '../feed/use-channels.ts'
import { request } from '../request.ts'

interface SaveOptions {
  project: string
  text: string
  mayShare: boolean
  onClose(): void
}

/** A dialog that saves a search as a view. */
export function SaveSearch({ project, text, mayShare, onClose }: SaveOptions) {
  const dialog = useRef<HTMLDialogElement>(null)
  const close = () => dialog.current?.close()
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="save-search" onClose={onClose}>
      <h2 id="save-search">Save this search</h2>
      <p>
        <bdi>{toReaderText(text)}</bdi>
      </p>
      <Cancel.Provider value={close}>
        <Form
          action="Save"
          send={value =>
            request('POST /api/projects/:projectId/views', {
              ...{ projectId: project, name: value('name'), q: text },
              isShared: value('isShared') !== '',
            })
          }
          onDone={({ name }) => {
            viewChanges.value += 1
            close()
            // The button that opened the dialog is hidden.
            document.getElementById('search')?.focus({ preventScroll: true })
            showToast(`Saved as the view ${name}.`)
          }}
        >
          <Field name="name" label="Name" />
          {mayShare && <Checkbox name="isShared">Share with all members</Checkbox>}
        </Form>
      </Cancel.Provider>
    </dialog>
  )
}
