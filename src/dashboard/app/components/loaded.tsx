import type { ComponentChildren } from 'preact'
import { ErrorNotice } from './standalone-page.tsx'
import type { Query } from './use-query.ts'

interface LoadedOptions<Data> {
  query: Pick<Query<Data>, 'data' | 'failure' | 'refetch'>
  children(data: Data): ComponentChildren
}

/** What has been read; until then that it is being read, or why it could not be and the way to try again. */
export function Loaded<Data>({ query: { data, failure, refetch }, children }: LoadedOptions<Data>) {
  return (
    <>
      {failure && <ErrorNotice failure={failure} onRetry={() => void refetch()} />}
      {data === undefined && !failure && (
        <div role="status" aria-label="Loading" class="loading">
          <span class="skeleton line w75" />
          <span class="skeleton line w50" />
          <span class="skeleton line w60" />
        </div>
      )}
      {data !== undefined && children(data)}
    </>
  )
}
