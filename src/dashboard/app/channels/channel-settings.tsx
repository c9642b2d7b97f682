import { useState } from 'preact/hooks'
import type { ChannelEdit, ProjectChannel } from '../../../channels/schema.ts'
import { withPasswordPrompt } from '../components/password-prompt.tsx'
import { TextArea } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { showToast } from '../components/toast.tsx'
import { editChannel } from './api.ts'

interface SettingsOptions {
  project: string
  channel: ProjectChannel
}

/** What the channel is called and what people say of it. */
export function EditChannel({ project, channel }: SettingsOptions) {
  const { id, name, icon, description } = channel
  const [isOpen, setOpen] = useState(false)
  if (!isOpen) return <Change label="Edit" onClick={() => setOpen(true)} />
  return (
    <>
      <Form
        action="Save"
        send={value =>
          editChannel(project, id, {
            name: value('name'),
            icon: value('icon').trim() || null,
            description: value('description') || null,
          })
        }
        onDone={() => {
          setOpen(false)
          showToast({
            message: 'The channel is changed.',
            undo: () => editChannel(project, id, { name, icon, description }),
          })
        }}
      >
        <Field
          name="name"
          label="Name"
          autocomplete="off"
          hint="Changes what is shown. Applications go on sending to the name they know."
          value={name}
        />
        <Field
          name="icon"
          label="Icon"
          autocomplete="off"
          hint="One emoji"
          isOptional
          value={icon ?? ''}
        />
        <TextArea name="description" label="Description" value={description ?? ''} />
      </Form>
      <Change label="Cancel" onClick={() => setOpen(false)} />
    </>
  )
}

/** For how long its events are kept; `mayChange` says whether the reader may say so. */
export function Retention({
  project,
  channel: { id, keepDays },
  mayChange,
}: SettingsOptions & { mayChange: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <section class="section" aria-labelledby="keeping">
      <h2 id="keeping">Kept</h2>
      <p class="note">
        {keepDays === null
          ? 'Its events are kept for as long as the project says.'
          : `Its events are kept for ${toDays(keepDays)}, then deleted.`}
      </p>
      {mayChange && !isOpen && <Change label="Change" onClick={() => setOpen(true)} />}
      {isOpen && (
        <>
          <Form
            action="Save"
            send={value =>
              withPasswordPrompt(() =>
                editChannel(project, id, { keepDays: toKeepDays(value('keepDays')) }),
              )
            }
            onDone={() => {
              setOpen(false)
              showToast({ message: 'How long events are kept is changed.' })
            }}
          >
            <Field
              name="keepDays"
              label="Days"
              type="number"
              isOptional
              autocomplete="off"
              hint="Older events are deleted, and nothing brings them back. Empty for as long as the project says."
              value={keepDays === null ? '' : String(keepDays)}
            />
          </Form>
          <Change label="Cancel" onClick={() => setOpen(false)} />
        </>
      )}
    </section>
  )
}

/** Puts the channel away, and takes it out again. */
export function ArchiveChannel({ project, channel: { id, isArchived } }: SettingsOptions) {
  async function archive(edit: ChannelEdit) {
    const result = await editChannel(project, id, edit)
    if (!result.ok) return showToast({ message: result.failure.message })
    showToast({
      message: edit.isArchived ? 'The channel is archived.' : 'The channel is back.',
      undo: () => editChannel(project, id, { isArchived }),
    })
  }
  return (
    <section class="section" aria-labelledby="archive">
      <h2 id="archive">Archive</h2>
      <p class="note">
        An archived channel is out of the lists and sends no notifications. It takes events and
        tells webhooks as before.
      </p>
      <Change
        label={isArchived ? 'Take it out of the archive' : 'Archive this channel'}
        onClick={() => void archive({ isArchived: !isArchived })}
      />
    </section>
  )
}

function Change({ label, onClick }: { label: string; onClick(): void }) {
  return (
    <button type="button" class="quiet-button" onClick={onClick}>
      {label}
    </button>
  )
}

function toDays(days: number): string {
  return days === 1 ? 'a day' : `${days.toLocaleString()} days`
}

/** What is no number goes as it is: the server says what is wrong with it. */
function toKeepDays(text: string): number | null {
  return text.trim() === '' ? null : Number(text)
}
