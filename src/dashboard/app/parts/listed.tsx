import type { ComponentChildren } from 'preact'
import type { Pages } from '../users/use-pages.ts'
import { Loaded } from './loaded.tsx'

interface ListedOptions<Item> {
  pages: Pages<Item>
  /** What is said where there is nothing. */
  nothing: ComponentChildren
  children(item: Item): ComponentChildren
}

/** A list that is read page by page, in each of its states. */
export function Listed<Item>({ pages, nothing, children }: ListedOptions<Item>) {
  const { items, isReading, failure, hasMore, readMore } = pages
  const isSettled = items.length > 0 || !isReading
  const read = async () => readMore()
  return (
    <>
      <ul class="items" aria-busy={isReading}>
        {items.map(children)}
      </ul>
      <Loaded of={{ data: isSettled && !failure ? items : undefined, failure, read }}>
        {() => items.length === 0 && nothing}
      </Loaded>
      {hasMore && !isReading && !failure && (
        <button type="button" class="button" onClick={readMore}>
          Show more
        </button>
      )}
    </>
  )
}
