import { LEVELS, type Level } from '../../../log/channels/level.ts'
import type { ProjectChannel, ChannelEdit } from '../../../log/channels/schema.ts'
import type { ProjectPageProps } from './props.ts'
import { EscalationSettings } from '../channels/escalation.tsx'
import { NotificationSettings } from '../channels/notification-settings.tsx'
import { Sparkline } from '../channels/sparkline.tsx'
import { channelChanges } from '../feed/use-channels.ts'
import { ProjectLayout } from '../components/layout.tsx'
import { Loaded, MINUTE_MS, useRoute } from '../components/query.tsx'
import { toSince } from '../time-texts.ts'
import { capitalize } from '../components/level.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toFeedPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { SilencedPlace } from '../threads/silences.tsx'
import { useRef, useState } from 'preact/hooks'
import { Field, Form } from '../components/form.tsx'
import { pickChanges, pickFormer } from '../changes.ts'
import { Select, TextArea } from '../components/fields.tsx'
import { FormButton, InlineForm } from '../components/inline-form.tsx'
import { showResult, showToast } from '../components/toast.tsx'
import { parseRetentionDays } from '../organization/retention-days.ts'
import { editChannel } from '../channels/api.ts'
import { toPlural } from '../locale.ts'
import { QuietButton } from '../components/buttons.tsx'
import { Section } from '../components/item.tsx'

/** A channel: its description, notification settings, retention and archive state. */
export default function ChannelPage({ account, project, channel: id = '' }: ProjectPageProps) {
  const query = useRoute(
    'GET /api/projects/:projectId/channels/:channelId',
    { projectId: project, channelId: id },
    { when: channelChanges, everyMs: MINUTE_MS },
  )
  return (
    <ProjectLayout
      account={account}
      project={project}
      at="channels"
      list="Channels"
      title={query.data?.name ?? 'Channel'}
    >
      <Loaded
        query={query}
        missing={{
          title: 'Channel not found',
          text: 'It was deleted, or the link is incomplete. Copy all of the link.',
        }}
      >
        {channel => (
          <div class="settings">
            <About channel={channel} />
            <SilencedPlace project={project} place={{ channelId: id }} />
            <div class="actions">
              <a class="quiet-button" href={toFeedPath(project, id)}>
                View events
              </a>
              {isAllowed(account, project, 'member') && (
                <EditChannel key={id} project={project} channel={channel} />
              )}
            </div>
            <section class="section" aria-label="My notifications">
              <NotificationSettings
                key={id}
                project={project}
                channel={id}
                hint="Only for you, on all your devices"
              />
            </section>
            <EscalationSettings key={id} {...{ account, project, channel }} />
            <Retention
              key={id}
              project={project}
              channel={channel}
              mayChange={isAllowed(account, project, 'admin')}
            />
            {isAllowed(account, project, 'member') && (
              <ArchiveChannel project={project} channel={channel} />
            )}
          </div>
        )}
      </Loaded>
    </ProjectLayout>
  )
}

function About({ channel }: { channel: ProjectChannel }) {
  const { name, icon, description, isArchived, level, today, lastEventAt, createdAt } = channel
  return (
    <>
      <h1 class="page-title">
        {icon !== null && <span aria-hidden="true">{icon} </span>}
        <bdi>{name}</bdi> {isArchived && <span class="badge">Archived</span>}
      </h1>
      {description !== null && (
        <p class="page-lead">
          <bdi>{description}</bdi>
        </p>
      )}
      <dl class="counts-list">
        <div>
          <dt>Events {toSince(today.length)}</dt>
          <dd>
            {today.reduce((sum, count) => sum + count).toLocaleString()}{' '}
            <Sparkline counts={today} />
          </dd>
        </div>
        {lastEventAt !== null && (
          <div>
            <dt>Last event</dt>
            <dd>
              <Moment at={lastEventAt} />
            </dd>
          </div>
        )}
        {level !== 'normal' && (
          <div>
            <dt>Default level</dt>
            <dd>{capitalize(level)}</dd>
          </div>
        )}
        <div>
          <dt>Created</dt>
          <dd>
            <Moment at={createdAt} />
          </dd>
        </div>
      </dl>
    </>
  )
}

interface SettingsOptions {
  project: string
  channel: ProjectChannel
}

/** Edits the name, icon, description and default level of a channel. */
function EditChannel({ project, channel }: SettingsOptions) {
  return (
    <InlineForm action="Edit">
      {close => <ChannelForm {...{ project, channel }} onDone={close} />}
    </InlineForm>
  )
}

function ChannelForm({ project, channel, onDone }: SettingsOptions & { onDone(): void }) {
  // As it was when the form was opened.
  const [{ id, name, icon, description, level }] = useState(channel)
  const before = { name, icon, description, level }
  const sent = useRef<ChannelEdit>({})
  return (
    <Form
      action="Save"
      send={value => {
        sent.current = pickChanges<ChannelEdit>(before, {
          name: value('name'),
          icon: value('icon').trim() || null,
          description: value('description') || null,
          level: value('level') as Level,
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
      <Select
        name="level"
        label="Default level"
        hint="For events that are sent without a level, from now on."
        options={LEVELS.map(value => ({ value, text: capitalize(value) }))}
        value={level}
      />
    </Form>
  )
}

/** The retention of a channel's events; `mayChange` allows the member to change it. */
function Retention({
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
        <FormButton
          action="Change"
          submit="Save"
          send={value =>
            editChannel(project, id, {
              keepDays: parseRetentionDays(value('keepDays')) as number | null,
            })
          }
          onDone={() => showToast('Retention saved.')}
        >
          <Field
            name="keepDays"
            label="Days"
            isNumber
            isOptional
            hint="Older events are deleted permanently. Leave empty to use the project default."
            value={keepDays === null ? '' : String(keepDays)}
          />
        </FormButton>
      )}
    </Section>
  )
}

/** Archives or unarchives a channel. */
function ArchiveChannel({ project, channel: { id, isArchived } }: SettingsOptions) {
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
