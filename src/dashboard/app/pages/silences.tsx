import { ActionButton } from '../components/action-button.tsx'
import { Item } from '../components/item.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { Loaded } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { useChannels } from '../feed/use-channels.ts'
import { readRows, Rows, toText } from '../push/quiet-hours.tsx'
import { request } from '../request.ts'
import { isAllowed } from '../session.ts'
import {
  SilenceButton,
  SilenceEnd,
  toPlace,
  useSilences,
  type Silence,
} from '../threads/silences.tsx'
import type { ProjectPageProps } from './props.ts'

/** The silences of a project, each with its author, its reason and its end. */
export default function SilencesPage({ account, project }: ProjectPageProps) {
  const silences = useSilences(project)
  const { list = [] } = useChannels(project)
  const mayAct = isAllowed(account, project, 'member')
  const end = (silenceId: string) =>
    request('DELETE /api/projects/:projectId/silences/:silenceId', {
      projectId: project,
      silenceId,
    })
  return (
    <ProjectLayout account={account} project={project} at="silences" title="Silences">
      <div class="settings">
        <h1 class="page-title">Silences</h1>
        <p class="page-lead">
          Nobody is notified of what is silenced, not even of critical events. What still fires at
          the end is told then. <a href="/docs/alerts#silences">How silences work</a>
        </p>
        {mayAct && (
          <div class="primary-action">
            <SilenceButton
              action="New silence"
              isPrimary
              project={project}
              places={[
                toPlace({}, 'The whole project'),
                ...list.map(({ id, name }) => toPlace({ channel: id }, name)),
              ]}
              hours={{ fields: <Rows initial={[]} />, read: readRows }}
            />
          </div>
        )}
        <Loaded query={silences}>
          {({ items }) => (
            <>
              <ul class="items">
                {items.map(one => (
                  <Item
                    key={one.id}
                    title={<bdi>{toName(one)}</bdi>}
                    details={[
                      <bdi>{one.reason}</bdi>,
                      <bdi>{one.by}</bdi>,
                      one.hours?.map(toText).join('; '),
                      one.isActive ? (
                        <SilenceEnd {...one} />
                      ) : (
                        <>
                          from <Moment at={one.startsAt} />
                        </>
                      ),
                    ]}
                  >
                    {mayAct && (
                      <ActionButton
                        action="End"
                        label={`End the silence of ${toName(one)}`}
                        send={() => end(one.id)}
                        onDone={() => void silences.refetch()}
                      />
                    )}
                  </Item>
                ))}
              </ul>
              {items.length === 0 && (
                <div class="empty-state">
                  <h2>Nothing is silenced</h2>
                  <p>
                    Silence a channel or the project before you work on it. What is firing has{' '}
                    <b>Silence…</b> on the page <b>Open</b>.
                  </p>
                </div>
              )}
            </>
          )}
        </Loaded>
      </div>
    </ProjectLayout>
  )
}

function toName({ channelName, thread }: Silence): string {
  return [thread, channelName ?? 'the whole project'].filter(part => part !== null).join(' in ')
}
