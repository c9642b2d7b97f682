import type { ComponentChildren } from 'preact'
import type { Pages } from './use-pages.ts'
import { Loaded } from './loaded.tsx'

interface PagedListOptions<Item> {
  pages: Pages<Item>
  className?: string
  /** Shown when the list is empty. */
  empty: ComponentChildren
  children(item: Item): ComponentChildren
}

/** A list that is loaded page by page, in each of its states. */
export function PagedList<Item>(options: PagedListOptions<Item>) {
  const { pages, className = 'items', empty, children } = options
  const { data, items, failure, loadMore } = pages
  return (
    <>
      <ul class={className} aria-busy={!data && !failure}>
        {items.map(children)}
      </ul>
      <Loaded query={pages}>{() => items.length === 0 && empty}</Loaded>
      {loadMore && !failure && (
        <button type="button" class="button button-plain" onClick={loadMore}>
          Show more
        </button>
      )}
    </>
  )
}
