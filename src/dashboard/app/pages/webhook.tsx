import type { ProjectPage } from './props.ts'
import { SettingsFrame } from '../parts/frame.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Moment } from '../parts/moment.tsx'
import { useAnswer, type Asked } from '../parts/use-answer.ts'
import { toProjectPath } from '../paths.ts'
import { readChannels } from '../feed/calls.ts'
import { isAllowed } from '../session.ts'
import { readWebhook, type Place, type Webhook } from '../webhooks/calls.ts'
import { Manage } from '../webhooks/manage.tsx'
import { PRESETS } from '../webhooks/presets.ts'
import { NewSecret } from '../webhooks/secret.tsx'
import { StateBadge, StateLine } from '../webhooks/state-line.tsx'

/** All about one webhook. */
export default function WebhookPage({ account, project, webhook: id = '' }: ProjectPage) {
  const place = { project, webhook: id }
  const asked = useAnswer(`${project} ${id}`, () => readWebhook(place))
  const isAdmin = isAllowed(account, project, 'admin')
  return (
    <SettingsFrame
      account={account}
      project={project}
      path={toProjectPath('webhooks', project)}
      title={asked.data?.name ?? 'Webhook'}
    >
      <p>
        <a class="back" href={toProjectPath('webhooks', project)}>
          Webhooks
        </a>
      </p>
      {asked.failure?.code === 'not_found' ? (
        <div class="nothing">
          <h1>No such webhook</h1>
          <p>It may have been deleted.</p>
        </div>
      ) : (
        <Loaded of={asked}>
          {webhook => <Details place={place} webhook={webhook} asked={asked} isAdmin={isAdmin} />}
        </Loaded>
      )}
    </SettingsFrame>
  )
}

interface DetailsOptions {
  place: Place
  webhook: Webhook
  asked: Asked<Webhook>
  isAdmin: boolean
}

function Details({ place, webhook, asked: { read, take }, isAdmin }: DetailsOptions) {
  const { name, host, url, preset, channels, previousSecretUntil, createdAt } = webhook
  return (
    <div class="settings">
      <h1 class="page-title">
        <bdi>{name}</bdi> <StateBadge webhook={webhook} />
      </h1>
      <StateLine webhook={webhook} />
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
          {channels === null ? 'All' : <ChannelNames project={place.project} ids={channels} />}
        </dd>
        {previousSecretUntil !== null && (
          <>
            <dt>Old secret</dt>
            <dd>
              <span>
                signs, too, until <Moment atMs={Date.parse(previousSecretUntil)} isFar />
              </span>
            </dd>
          </>
        )}
        <dt>Made</dt>
        <dd>
          <Moment atMs={Date.parse(createdAt)} isFar />
        </dd>
      </dl>
      {isAdmin && (
        <Manage place={place} webhook={webhook} onChanged={take} onDeed={() => void read()} />
      )}
    </div>
  )
}

function ChannelNames({ project, ids }: { project: string; ids: readonly string[] }) {
  const { data } = useAnswer(project, () => readChannels(project))
  return (
    <>
      {ids.map(id => (
        <bdi key={id}>{data?.items.find(one => one.id === id)?.name ?? id}</bdi>
      ))}
    </>
  )
}
