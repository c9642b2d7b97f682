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

/** Edits the name, icon and description of a channel. */
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
            message: 'Channel saved.',
            undo: () => editChannel(project, id, { name, icon, description }),
          })
        }}
      >
        <Field
          name="name"
          label="Name"
          autocomplete="off"
          hint="Changes only the displayed name. Applications keep sending to the original name."
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

/** The retention of a channel's events; `mayChange` allows the member to change it. */
export function Retention({
  project,
  channel: { id, keepDays },
  mayChange,
}: SettingsOptions & { mayChange: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <section class="section" aria-labelledby="retention">
      <h2 id="retention">Retention</h2>
      <p class="note">
        {keepDays === null
          ? 'Events are kept for as long as the project settings say.'
          : `Events are kept for ${toDays(keepDays)}, then deleted.`}
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
              showToast({ message: 'Retention saved.' })
            }}
          >
            <Field
              name="keepDays"
              label="Days"
              type="number"
              isOptional
              autocomplete="off"
              hint="Older events are deleted permanently. Leave empty to use the project setting."
              value={keepDays === null ? '' : String(keepDays)}
            />
          </Form>
          <Change label="Cancel" onClick={() => setOpen(false)} />
        </>
      )}
    </section>
  )
}

/** Archives or unarchives a channel. */
export function ArchiveChannel({ project, channel: { id, isArchived } }: SettingsOptions) {
  async function archive(edit: ChannelEdit) {
    const result = await editChannel(project, id, edit)
    if (!result.ok) return showToast({ message: result.failure.message })
    showToast({
      message: edit.isArchived ? 'Channel archived.' : 'Channel unarchived.',
      undo: () => editChannel(project, id, { isArchived }),
    })
  }
  return (
    <section class="section" aria-labelledby="archive">
      <h2 id="archive">Archive</h2>
      <p class="note">
        An archived channel is hidden from lists and sends no notifications. It still accepts events
        and sends them to webhooks.
      </p>
      <Change
        label={isArchived ? 'Unarchive this channel' : 'Archive this channel'}
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
  return days === 1 ? '1 day' : `${days.toLocaleString()} days`
}

/** Empty input means null. Other invalid input becomes NaN, which the server rejects. */
function toKeepDays(text: string): number | null {
  return text.trim() === '' ? null : Number(text)
}
