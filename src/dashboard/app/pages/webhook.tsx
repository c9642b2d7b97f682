import type { ProjectPageProps } from './props.ts'
import { Layout } from '../components/layout.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Moment } from '../components/timestamp.tsx'
import { useQuery, useRoute, type Query } from '../components/use-query.ts'
import { toProjectPath } from '../paths.ts'
import { readChannels } from '../feed/api.ts'
import { isAllowed } from '../session.ts'
import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'
import type { WebhookRef } from '../webhooks/recover.ts'
import { ManageWebhook } from '../webhooks/manage-webhook.tsx'
import { PRESETS } from '../webhooks/presets.ts'
import { NewSecret } from '../webhooks/new-secret.tsx'
import { StatusBadge, StatusLine } from '../webhooks/status-line.tsx'

/** A webhook: its settings, status and attempts. */
export default function WebhookPage({ account, project, webhook: id = '' }: ProjectPageProps) {
  const place = { projectId: project, webhookId: id }
  const query = useRoute('GET /api/projects/:projectId/webhooks/:webhookId', place)
  const isAdmin = isAllowed(account, project, 'admin')
  return (
    <Layout
      account={account}
      project={project}
      path={toProjectPath('webhooks', project)}
      title={query.data?.name ?? 'Webhook'}
    >
      <p>
        <a class="text-link" href={toProjectPath('webhooks', project)}>
          Webhooks
        </a>
      </p>
      {query.failure?.code === 'not_found' ? (
        <div class="empty-state">
          <h1>Webhook not found</h1>
          <p>It may have been deleted.</p>
        </div>
      ) : (
        <Loaded query={query}>
          {webhook => <Details place={place} webhook={webhook} query={query} isAdmin={isAdmin} />}
        </Loaded>
      )}
    </Layout>
  )
}

interface DetailsOptions {
  place: WebhookRef
  webhook: Webhook
  query: Query<Webhook>
  isAdmin: boolean
}

function Details({ place, webhook, query: { refetch, change }, isAdmin }: DetailsOptions) {
  const { name, host, url, preset, channels, previousSecretUntil, createdAt } = webhook
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
        <ManageWebhook
          place={place}
          webhook={webhook}
          onChanged={edited => change(() => edited)}
          onActivity={() => void refetch()}
        />
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
