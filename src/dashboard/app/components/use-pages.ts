import { useRef } from 'preact/hooks'
import type { Page } from '../../../http/envelope.ts'
import type { Result } from '../request.ts'
import { useQuery, type Query, type QueryOptions } from './use-query.ts'

export interface Pages<Item, More = unknown> extends Query<Page<Item> & More> {
  items: readonly Item[]
  /** Undefined if there are no more pages. */
  loadMore: (() => void) | undefined
  /** Changes the items after the server has accepted a change. */
  changeItems(edit: (items: readonly Item[]) => Item[]): void
}

/** Loads a list page by page. It is loaded again with all pages that are shown. */
export function usePages<Item, More = unknown>(
  key: string,
  read: (cursor: string | undefined) => Promise<Result<Page<Item> & More>>,
  options?: QueryOptions<Page<Item> & More>,
): Pages<Item, More> {
  const shown = useRef({ key, pages: 1 })
  if (shown.current.key !== key) shown.current = { key, pages: 1 }
  const query = useQuery(key, () => readPages(read, shown.current.pages), options)
  const { data } = query
  function loadMore() {
    shown.current.pages += 1
    void query.refetch(() => readPages(read, 1, data))
  }
  return {
    ...query,
    items: data?.items ?? [],
    loadMore: typeof data?.nextCursor === 'string' ? loadMore : undefined,
    changeItems: edit => query.change(page => ({ ...page, items: edit(page.items) })),
  }
}

/** Reads this many pages after `page`. The result has the items of all. */
async function readPages<Item, More>(
  read: (cursor: string | undefined) => Promise<Result<Page<Item> & More>>,
  count: number,
  page?: Page<Item> & More,
): Promise<Result<Page<Item> & More>> {
  const result = await read(page?.nextCursor ?? undefined)
  if (!result.ok) return result
  const data = { ...result.data, items: [...(page?.items ?? []), ...result.data.items] }
  return count > 1 && data.nextCursor !== null
    ? readPages(read, count - 1, data)
    : { ok: true, data }
}
