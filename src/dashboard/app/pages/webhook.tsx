import type { ProjectPageProps } from './props.ts'
import { ProjectLayout } from '../components/layout.tsx'
import { Loaded, useQuery, useRoute, type Query } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { readChannels } from '../feed/use-channels.ts'
import { isAllowed } from '../session.ts'
import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'
import type { WebhookRef } from '../webhooks/recover.ts'
import { ManageWebhook } from '../webhooks/manage-webhook.tsx'
import { PRESETS, NewSecret } from '../webhooks/webhook-form.tsx'
import { StatusBadge, StatusLine } from '../webhooks/status-line.tsx'

/** A webhook: its settings, status and attempts. */
export default function WebhookPage({ account, project, webhook: id = '' }: ProjectPageProps) {
  const place = { projectId: project, webhookId: id }
  const query = useRoute('GET /api/projects/:projectId/webhooks/:webhookId', place)
  const isAdmin = isAllowed(account, project, 'admin')
  return (
    <ProjectLayout
      account={account}
      project={project}
      at="webhooks"
      list="Webhooks"
      title={query.data?.name ?? 'Webhook'}
    >
      <Loaded
        query={query}
        missing={{ title: 'Webhook not found', text: 'It may have been deleted.' }}
      >
        {webhook => <Details place={place} webhook={webhook} query={query} isAdmin={isAdmin} />}
      </Loaded>
    </ProjectLayout>
  )
}

interface DetailsOptions {
  place: WebhookRef
  webhook: Webhook
  query: Query<Webhook>
  isAdmin: boolean
}

function Details({ place, webhook, query: { refetch }, isAdmin }: DetailsOptions) {
  const { name, host, url, preset, channels, viewId, previousSecretUntil, createdAt } = webhook
  return (
    <div class="settings">
      <h1 class="page-title">
        <bdi>{name}</bdi> <StatusBadge webhook={webhook} />
      </h1>
      <StatusLine webhook={webhook} />
      <NewSecret webhook={webhook.id} />
      <dl class="facts">
        <dt>{url === null ? 'Host' : 'URL'}</dt>
        <dd>
          <bdi>{url ?? host}</bdi>
        </dd>
        <dt>Receiver</dt>
        <dd>{PRESETS[preset].text}</dd>
        <dt>Channels</dt>
        <dd>
          {channels === null ? 'All' : <ChannelNames project={place.projectId} ids={channels} />}
        </dd>
        {viewId !== null && (
          <>
            <dt>Events</dt>
            <dd>Only events of a view</dd>
          </>
        )}
        {previousSecretUntil !== null && (
          <>
            <dt>Old secret</dt>
            <dd>
              <span>
                also signs until <Moment at={previousSecretUntil} />
              </span>
            </dd>
          </>
        )}
        <dt>Created</dt>
        <dd>
          <Moment at={createdAt} />
        </dd>
      </dl>
      {isAdmin && (
        <ManageWebhook place={place} webhook={webhook} onChanged={() => void refetch()} />
      )}
    </div>
  )
}

function ChannelNames({ project, ids }: { project: string; ids: readonly string[] }) {
  const { data } = useQuery(project, () => readChannels(project))
  return (
    <>
      {ids.map(id => (
        <bdi key={id}>{data?.items.find(one => one.id === id)?.name ?? id}</bdi>
      ))}
    </>
  )
}
