import { useRef } from 'preact/hooks'
import type { Page } from '../../../http/envelope.ts'
import { request, type Result } from '../request.ts'
import type { Data, Input, Item, ListName } from '../routes.ts'
import { useQuery, type Query, type QueryOptions, Loaded } from './query.tsx'
import type { ComponentChildren } from 'preact'

/** At most this many pages are read at once. A longer list keeps the others as they were. */
const MAX_READS = 20

export interface Pages<Item, Data = unknown> extends Query<Data> {
  items: readonly Item[]
  /** Undefined if there are no more pages. */
  loadMore: (() => void) | undefined
}

/** Loads a list page by page. It is loaded again with all pages that are shown. */
export function usePages<Name extends ListName>(
  name: Name,
  input: Input<Name>,
  options?: QueryOptions<Data<Name>>,
): Pages<Item<Name>, Data<Name>> {
  const key = JSON.stringify([name, input])
  const shown = useRef({ key, pages: 1 })
  if (shown.current.key !== key) shown.current = { key, pages: 1 }
  // The routes of lists take a cursor and return pages.
  const read = (cursor: string | undefined) =>
    request(name, { ...input, cursor } as never) as Promise<Result<Page<Item<Name>>>>
  const readAll = (count: number, page?: Page<Item<Name>>) =>
    readPages(read, count, page) as Promise<Result<Data<Name>>>
  const latest = useRef<Page<Item<Name>>>(undefined)
  const query: Query<Data<Name>> = useQuery(
    key,
    async () => {
      const { pages } = shown.current
      const result = (await readAll(pages)) as Result<Page<Item<Name>>>
      if (result.ok && pages > MAX_READS) result.data = withRest(result.data, latest.current)
      return result as Result<Data<Name>>
    },
    options,
  )
  const data = query.data as Page<Item<Name>> | undefined
  latest.current = data
  return {
    ...query,
    items: data?.items ?? [],
    loadMore: data?.nextCursor
      ? () => {
          shown.current.pages += 1
          void query.refetch(() => readAll(1, data))
        }
      : undefined,
  }
}

/** Adds the items of a known list that follow a part of it, which was read again. */
function withRest<Item>(part: Page<Item>, known: Page<Item> | undefined): Page<Item> {
  const last = JSON.stringify(part.items.at(-1))
  const at = known?.items.findIndex(one => JSON.stringify(one) === last) ?? -1
  if (!known || at < 0 || part.nextCursor === null) return part
  return { ...known, items: [...part.items, ...known.items.slice(at + 1)] }
}

/** Reads this many pages with items after `page`. The result has the items of all. */
async function readPages<Item>(
  read: (cursor: string | undefined) => Promise<Result<Page<Item>>>,
  count: number,
  page?: Page<Item>,
): Promise<Result<Page<Item>>> {
  let items = page?.items ?? []
  let result: Result<Page<Item>>
  let reads = 0
  let cursor = page?.nextCursor
  do {
    result = await read(cursor ?? undefined)
    if (!result.ok) return result
    // A search can leave a page empty.
    if (result.data.items.length > 0) count -= 1
    items = [...items, ...result.data.items]
    cursor = result.data.nextCursor
    reads += 1
  } while (count > 0 && cursor !== null && reads < MAX_READS)
  return { ok: true, data: { ...result.data, items } }
}

/** Returns neighbours with the same key as one group each. */
export function toGroups<Item>(items: readonly Item[], toKey: (item: Item) => string): Item[][] {
  const groups: Item[][] = []
  for (const item of items) {
    const group = groups.at(-1)
    if (group && toKey(group[0]!) === toKey(item)) group.push(item)
    else groups.push([item])
  }
  return groups
}

interface PagedListOptions<Item> {
  pages: Pick<Pages<Item>, 'data' | 'items' | 'failure' | 'refetch'> & Partial<Pages<Item>>
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
