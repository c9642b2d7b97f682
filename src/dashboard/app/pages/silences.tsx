import { Item } from '../components/item.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { PagedList } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { useChannels } from '../feed/use-channels.ts'
import { readRows, Rows, toText } from '../push/quiet-hours.tsx'
import { isAllowed } from '../session.ts'
import { EndButton, SilenceEnd, toName, useSilences } from '../threads/project-silence.tsx'
import { SilenceButton, toPlace } from '../threads/silences.tsx'
import type { ProjectPageProps } from './props.ts'

/** The silences of a project, each with its author, its reason and its end. */
export default function SilencesPage({ account, project }: ProjectPageProps) {
  const silences = useSilences(project)
  const { list = [] } = useChannels(project)
  const mayAct = isAllowed(account, project, 'member')
  return (
    <ProjectLayout account={account} project={project} at="silences" title="Silences">
      <div class="settings">
        <p class="page-lead">
          Nobody is notified of silenced events, not even of critical ones. A thread that still
          fires at the end is told then. <a href="/docs/alerts#silences">How silences work</a>
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
        <PagedList
          pages={{ ...silences, items: silences.data?.items ?? [] }}
          empty={
            <div class="empty-state">
              <h2>Nothing is silenced</h2>
              <p>
                Silence a channel or the project before you work on it. A firing thread has{' '}
                <b>Silence…</b> on the page <b>Open</b>.
              </p>
            </div>
          }
        >
          {one => (
            <Item
              key={one.id}
              title={<bdi>{toName(one)}</bdi>}
              details={[
                <bdi>{one.reason}</bdi>,
                <bdi>{one.by}</bdi>,
                one.hours?.map(toText).join('; '),
                one.isActive ? <SilenceEnd {...one} /> : <Moment word="from" at={one.startsAt} />,
              ]}
            >
              {mayAct && <EndButton project={project} silence={one} />}
            </Item>
          )}
        </PagedList>
      </div>
    </ProjectLayout>
  )
}
