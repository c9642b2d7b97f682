import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { ProjectPage } from './props.ts'
import { Unfold } from '../parts/act.tsx'
import { SettingsFrame } from '../parts/frame.tsx'
import { Listed } from '../parts/listed.tsx'
import { toProjectPath, toWebhookPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { usePages } from '../users/use-pages.ts'
import { createWebhook, readWebhooks } from '../webhooks/calls.ts'
import { Deliveries } from '../webhooks/deliveries.tsx'
import { PRESETS } from '../webhooks/presets.ts'
import { newSecret } from '../webhooks/secret.tsx'
import { StateBadge, StateLine } from '../webhooks/state-line.tsx'
import { WebhookForm } from '../webhooks/webhook-form.tsx'

/** Where a project's events are posted to, and what could not be delivered. */
export default function WebhooksPage({ account, project }: ProjectPage) {
  const { route } = useLocation()
  const pages = usePages(project, cursor => readWebhooks(project, cursor))
  const [open, setOpen] = useState<'make'>()
  const isAdmin = isAllowed(account, project, 'admin')
  return (
    <SettingsFrame
      account={account}
      project={project}
      path={toProjectPath('webhooks', project)}
      title="Webhooks"
    >
      <h1 class="page-title">Webhooks</h1>
      <div class="settings">
        <p class="lead-in">
          Events are posted to these addresses as they happen, signed, and again until they arrive.
        </p>
        {isAdmin && (
          <p class="main-act">
            <Unfold isMain name="make" open={open} onOpen={setOpen}>
              Add a webhook
            </Unfold>
          </p>
        )}
        {open && (
          <WebhookForm
            project={project}
            action="Add it"
            send={webhook => createWebhook(project, webhook)}
            onDone={({ id, secret }) => {
              newSecret.value = { webhook: id, secret }
              route(toWebhookPath(project, id))
            }}
          />
        )}
        <Listed pages={pages} nothing={<p class="aside">There is no webhook yet.</p>}>
          {webhook => (
            <li key={webhook.id}>
              <div class="item-what">
                <h2 class="item-name">
                  <a href={toWebhookPath(project, webhook.id)}>
                    <bdi>{webhook.name}</bdi>
                  </a>
                </h2>
                <p class="item-about">
                  <bdi>{webhook.host}</bdi> · {PRESETS[webhook.preset].text} ·{' '}
                  {toReach(webhook.channels)}
                </p>
                <StateLine webhook={webhook} />
              </div>
              <StateBadge webhook={webhook} />
            </li>
          )}
        </Listed>
        {isAdmin && <Deliveries project={project} />}
      </div>
    </SettingsFrame>
  )
}

function toReach(channels: readonly string[] | null): string {
  if (channels === null) return 'all channels'
  return `${channels.length.toLocaleString()} ${channels.length === 1 ? 'channel' : 'channels'}`
}
