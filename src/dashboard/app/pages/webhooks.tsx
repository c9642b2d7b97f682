import { useLocation } from 'preact-iso'
import type { ProjectPageProps } from './props.ts'
import { InlineForm } from '../components/inline-form.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { toPlural } from '../locale.ts'
import { toWebhookPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { request } from '../request.ts'
import { Deliveries } from '../webhooks/deliveries.tsx'
import { PRESETS, WebhookForm, newSecret } from '../webhooks/webhook-form.tsx'
import { StatusBadge, StatusLine } from '../webhooks/status-line.tsx'

/** The webhooks of a project, and its undelivered messages. */
export default function WebhooksPage({ account, project }: ProjectPageProps) {
  const { route } = useLocation()
  const pages = usePages('GET /api/projects/:projectId/webhooks', { projectId: project })
  const isAdmin = isAllowed(account, project, 'admin')
  return (
    <ProjectLayout account={account} project={project} at="webhooks" title="Webhooks">
      <div class="settings">
        <p class="page-lead">
          Events are sent to these URLs as signed POST requests. Failed deliveries are retried.
        </p>
        {isAdmin && (
          <div class="primary-action">
            <InlineForm isPrimary action="Add a webhook">
              {() => (
                <WebhookForm
                  project={project}
                  action="Add webhook"
                  send={webhook =>
                    request('POST /api/projects/:projectId/webhooks', {
                      projectId: project,
                      ...webhook,
                    })
                  }
                  onDone={({ id, secret }) => {
                    newSecret.value = { webhook: id, secret }
                    route(toWebhookPath(project, id))
                  }}
                />
              )}
            </InlineForm>
          </div>
        )}
        <PagedList
          pages={pages}
          empty={
            <div class="empty-state">
              <h2>No webhooks yet</h2>
              <p>{isAdmin ? 'Add one' : 'Admins can add one'} to send events to other services.</p>
            </div>
          }
        >
          {webhook => (
            <li key={webhook.id}>
              <div class="item-main">
                <h2 class="item-name">
                  <a href={toWebhookPath(project, webhook.id)}>
                    <bdi>{webhook.name}</bdi>
                  </a>
                </h2>
                <p class="item-details">
                  <bdi>{webhook.host}</bdi> · {PRESETS[webhook.preset].text} ·{' '}
                  {toChannelSummary(webhook.channels)}
                </p>
                <StatusLine webhook={webhook} />
              </div>
              <StatusBadge webhook={webhook} />
            </li>
          )}
        </PagedList>
        {isAdmin && <Deliveries project={project} />}
      </div>
    </ProjectLayout>
  )
}

function toChannelSummary(channels: readonly string[] | null): string {
  if (channels === null) return 'all channels'
  return toPlural(channels.length, 'channel')
}
