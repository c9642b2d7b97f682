import { useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { FeedList } from '../feed/feed-list.tsx'
import { EMPTY_SEARCH, toSearchPath, toTermText, type Search } from '../feed/search.ts'
import { useFeed } from '../feed/use-feed.ts'
import { Section } from '../components/section.tsx'

/** The live feed of a user's events. */
export function UserTimeline({ project, userId }: { project: string; userId: string }) {
  const text = toTermText('users', userId)
  return (
    <Section id="timeline" title="Events">
      {text === undefined ? (
        <p class="note">This user ID cannot be searched for, so the events are not listed here.</p>
      ) : (
        <Events project={project} search={{ ...EMPTY_SEARCH, text }} />
      )}
    </Section>
  )
}

function Events({ project, search }: { project: string; search: Search }) {
  const { route } = useLocation()
  const list = useRef<HTMLElement>(null)
  const feed = useFeed({ project, search, onUnseen() {}, onShown() {}, onChannels() {} })
  return (
    <FeedList
      feed={feed}
      list={list}
      project={project}
      search={search}
      onOpen={id => route(toSearchPath(project, search, id))}
      empty={<p class="note">No stored event is about this user.</p>}
    />
  )
}
