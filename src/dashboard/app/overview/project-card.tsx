import type { Account } from '../../../access/sign-in/schema.ts'
import type { OverviewProject } from '../../../log/overview/schema.ts'
import { Sparkline } from '../channels/sparkline.tsx'
import { LevelMark } from '../components/level.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toVisibleTitle } from '../feed/log.ts'
import { toSearchPath } from '../feed/search.ts'
import { toSince } from '../time-texts.ts'
import { toPlural } from '../locale.ts'
import { toEventPath, toFeedPath, toProjectPath } from '../paths.ts'
import { findProject, isAllowed } from '../session.ts'
import { toRangeName } from '../time.ts'

const MAX_UNSEEN = 100

interface CardOptions {
  account: Account
  project: OverviewProject
  /** The present end of the project's log. */
  head: number
}

/** A project of the overview. */
export function ProjectCard({ account, project, head }: CardOptions) {
  const { id, name, newest, hours, isSilenced, failed, isComplete } = project
  const { firing, acknowledged, questions } = project
  const unusual = listUnusual(account, project)
  const unseen = Math.min(project.unseen + Math.max(head - project.head, 0), MAX_UNSEEN)
  const count = hours.reduce((sum, one) => sum + one, 0)
  return (
    <li class="card" data-attention={isUrgent(account, project) ? '' : undefined}>
      <header class="card-top">
        <div class="card-title">
          <h3>
            <a href={toFeedPath(id)}>
              <bdi>{name}</bdi>
            </a>
          </h3>
          <p class="item-details">
            {isComplete
              ? `${toPlural(count, 'event')} ${toSince(hours.length)}`
              : 'Counting took too long'}
          </p>
        </div>
        {unseen > 0 && (
          <span class="badge badge-good">
            {unseen === MAX_UNSEEN ? `${MAX_UNSEEN}+ new` : `${unseen} new`}
          </span>
        )}
        <Sparkline counts={hours} />
      </header>
      {(isUrgent(account, project) || acknowledged > 0 || isSilenced) && (
        <ul class={isUrgent(account, project) ? 'alerts urgent' : 'alerts'}>
          {isSilenced && (
            <li>
              <a href={toProjectPath('silences', id)}>Nobody is notified</a>
            </li>
          )}
          {[
            firing > 0 && `${toPlural(firing, 'alarm')} firing`,
            acknowledged > 0 && `${toPlural(acknowledged, 'alarm')} acknowledged`,
            questions > 0 && `${toPlural(questions, 'question')} without an answer`,
          ].map(
            text =>
              text && (
                <li key={text}>
                  <a href={toProjectPath('open', id)}>{text}</a>
                </li>
              ),
          )}
          {unusual.map(one => (
            <li key={`${one.channel?.id} ${one.kind}`}>
              <Deviation project={id} {...one} />
            </li>
          ))}
          {failed && failed.deliveries > 0 && (
            <li>
              <a href={toProjectPath('webhooks', id)}>
                {toPlural(failed.deliveries, 'delivery', 'deliveries')} failed in the last 7 days
              </a>
            </li>
          )}
          {failed && failed.webhooks > 0 && (
            <li>
              <a href={toProjectPath('webhooks', id)}>
                {toPlural(failed.webhooks, 'paused or disabled webhook')}
              </a>
            </li>
          )}
        </ul>
      )}
      {newest.length === 0 ? (
        <p class="card-empty">
          No events yet
          {isAllowed(account, id, 'admin') && (
            <>
              {' '}
              · <a href={toProjectPath('start', id)}>Send the first event</a>
            </>
          )}
        </p>
      ) : (
        <ul class="newest">
          {newest.map(event => (
            <li key={event.id}>
              <span class="channel-icon" aria-hidden="true">
                {event.icon ?? '#'}
              </span>
              <div>
                <a href={toEventPath(id, event.id)}>
                  <LevelMark level={event.level} /> <bdi>{toVisibleTitle(event.title)}</bdi>
                </a>
                <p class="item-details">
                  <bdi>{event.channelName}</bdi> · <Moment at={event.createdAt} />
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}

/** Returns whether something of a project is firing, asked, unusual or failed. */
export function isUrgent(account: Account, project: OverviewProject): boolean {
  const { firing, questions, failed } = project
  const failures = failed === null ? 0 : failed.deliveries + failed.webhooks
  return firing + questions + failures + listUnusual(account, project).length > 0
}

/** Lists unusual activity. The past weeks of the sample data are invented. */
function listUnusual(account: Account, { id, unusual }: OverviewProject) {
  return findProject(account, id)?.project.isSample ? [] : unusual
}

/** Unusual activity, with a link to its events. */
function Deviation({
  project,
  channel,
  kind,
  from,
  to,
  count,
  usual,
}: OverviewProject['unusual'][number] & { project: string }) {
  const path = toSearchPath(project, { channelId: channel?.id, text: '', from, to })
  const [bound, limit] = kind === 'loud' ? ['most', usual.most] : ['least', usual.least]
  return (
    <>
      <strong>
        {channel === null ? 'The project' : <bdi>{channel.name}</bdi>} is unusually {kind}:
      </strong>{' '}
      <a href={path}>{count.toLocaleString()} events</a>,{' '}
      {toRangeName(Date.parse(from), Date.parse(to))}. In the same hours of past weeks at {bound}{' '}
      {limit.toLocaleString()}.
    </>
  )
}
