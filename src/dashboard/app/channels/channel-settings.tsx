import type { ChannelEdit, ProjectChannel } from '../../../log/channels/schema.ts'
import { useRef, useState } from 'preact/hooks'
import { pickChanges, pickFormer } from '../changes.ts'
import { TextArea } from '../components/fields.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { Field, Form } from '../components/form.tsx'
import { showResult, showToast } from '../components/toast.tsx'
import { editChannel } from './api.ts'
import { toPlural } from '../plural.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { Section } from '../components/section.tsx'

interface SettingsOptions {
  project: string
  channel: ProjectChannel
}

/** Edits the name, icon and description of a channel. */
export function EditChannel({ project, channel }: SettingsOptions) {
  return (
    <InlineForm action="Edit">
      {close => <ChannelForm {...{ project, channel }} onDone={close} />}
    </InlineForm>
  )
}

function ChannelForm({ project, channel, onDone }: SettingsOptions & { onDone(): void }) {
  // As it was when the form was opened.
  const [{ id, name, icon, description }] = useState(channel)
  const before = { name, icon, description }
  const sent = useRef<ChannelEdit>({})
  return (
    <Form
      action="Save"
      send={value => {
        sent.current = pickChanges<ChannelEdit>(before, {
          name: value('name'),
          icon: value('icon').trim() || null,
          description: value('description') || null,
        })
        return editChannel(project, id, sent.current)
      }}
      onDone={() => {
        onDone()
        const former = pickFormer<ChannelEdit>(before, sent.current)
        showToast({
          message: 'Channel saved.',
          undo: () => editChannel(project, id, former),
        })
      }}
    >
      <Field
        name="name"
        label="Name"
        hint="Changes only the displayed name. Applications keep sending to the original name."
        value={name}
      />
      <Field name="icon" label="Icon" hint="One emoji" isOptional value={icon ?? ''} />
      <TextArea name="description" label="Description" value={description ?? ''} />
    </Form>
  )
}

/** The retention of a channel's events; `mayChange` allows the member to change it. */
export function Retention({
  project,
  channel: { id, keepDays },
  mayChange,
}: SettingsOptions & { mayChange: boolean }) {
  return (
    <Section id="retention" title="Retention">
      <p class="note">
        {keepDays === null
          ? 'Events are kept for as long as the project default says.'
          : `Events are kept for ${toPlural(keepDays, 'day')}, then deleted.`}
      </p>
      {mayChange && (
        <InlineForm action="Change">
          {close => (
            <Form
              action="Save"
              send={value => editChannel(project, id, { keepDays: toKeepDays(value('keepDays')) })}
              onDone={() => {
                close()
                showToast('Retention saved.')
              }}
            >
              <Field
                name="keepDays"
                label="Days"
                type="number"
                isOptional
                hint="Older events are deleted permanently. Leave empty to use the project default."
                value={keepDays === null ? '' : String(keepDays)}
              />
            </Form>
          )}
        </InlineForm>
      )}
    </Section>
  )
}

/** Archives or unarchives a channel. */
export function ArchiveChannel({ project, channel: { id, isArchived } }: SettingsOptions) {
  async function archive(edit: ChannelEdit) {
    showResult(await editChannel(project, id, edit), {
      message: edit.isArchived ? 'Channel archived.' : 'Channel unarchived.',
      undo: () => editChannel(project, id, { isArchived }),
    })
  }
  return (
    <Section id="archive" title="Archive">
      <p class="note">
        An archived channel is hidden from lists and sends no notifications. It still accepts events
        and sends them to webhooks.
      </p>
      <QuietButton onClick={() => void archive({ isArchived: !isArchived })}>
        {isArchived ? 'Unarchive this channel' : 'Archive this channel'}
      </QuietButton>
    </Section>
  )
}

/** Empty input means null. Other invalid input becomes NaN, which the server rejects. */
function toKeepDays(text: string): number | null {
  return text.trim() === '' ? null : Number(text)
}
