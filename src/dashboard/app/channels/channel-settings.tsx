import type { ChannelEdit, ProjectChannel } from '../../../channels/schema.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import { TextArea } from '../components/fields.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { Field, Form } from '../components/form.tsx'
import { showToast } from '../components/toast.tsx'
import { editChannel } from './api.ts'
import { t } from '../locales/translate.tsx'

interface SettingsOptions {
  project: string
  channel: ProjectChannel
}

/** Edits the name, icon and description of a channel. */
export function EditChannel({ project, channel }: SettingsOptions) {
  const { id, name, icon, description } = channel
  return (
    <InlineForm action={t('channels.edit')}>
      {close => (
        <Form
          action={t('channels.save')}
          send={value =>
            editChannel(project, id, {
              name: value('name'),
              icon: value('icon').trim() || null,
              description: value('description') || null,
            })
          }
          onDone={() => {
            close()
            showToast({
              message: t('channels.saved'),
              undo: () => editChannel(project, id, { name, icon, description }),
            })
          }}
        >
          <Field
            name="name"
            label={t('channels.name')}
            autocomplete="off"
            hint={t('channels.nameHint')}
            value={name}
          />
          <Field
            name="icon"
            label={t('channels.icon')}
            autocomplete="off"
            hint={t('channels.iconHint')}
            isOptional
            value={icon ?? ''}
          />
          <TextArea
            name="description"
            label={t('channels.description')}
            value={description ?? ''}
          />
        </Form>
      )}
    </InlineForm>
  )
}

/** The retention of a channel's events; `mayChange` allows the member to change it. */
export function Retention({
  project,
  channel: { id, keepDays },
  mayChange,
}: SettingsOptions & { mayChange: boolean }) {
  return (
    <section class="section" aria-labelledby="retention">
      <h2 id="retention">{t('channels.retention')}</h2>
      <p class="note">
        {keepDays === null
          ? t('channels.retentionOfProject')
          : t('channels.retentionDays', { days: keepDays })}
      </p>
      {mayChange && (
        <InlineForm action={t('channels.change')}>
          {close => (
            <Form
              action={t('channels.save')}
              send={value =>
                withVerification(() =>
                  editChannel(project, id, { keepDays: toKeepDays(value('keepDays')) }),
                )
              }
              onDone={() => {
                close()
                showToast({ message: t('channels.retentionSaved') })
              }}
            >
              <Field
                name="keepDays"
                label={t('channels.days')}
                type="number"
                isOptional
                autocomplete="off"
                hint={t('channels.daysHint')}
                value={keepDays === null ? '' : String(keepDays)}
              />
            </Form>
          )}
        </InlineForm>
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
      message: t(edit.isArchived ? 'channels.archived' : 'channels.unarchived'),
      undo: () => editChannel(project, id, { isArchived }),
    })
  }
  return (
    <section class="section" aria-labelledby="archive">
      <h2 id="archive">{t('channels.archive')}</h2>
      <p class="note">{t('channels.archiveNote')}</p>
      <button
        type="button"
        class="quiet-button"
        onClick={() => void archive({ isArchived: !isArchived })}
      >
        {t(isArchived ? 'channels.unarchiveThis' : 'channels.archiveThis')}
      </button>
    </section>
  )
}

/** Empty input means null. Other invalid input becomes NaN, which the server rejects. */
function toKeepDays(text: string): number | null {
  return text.trim() === '' ? null : Number(text)
}
