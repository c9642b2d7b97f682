import type { ComponentChildren } from 'preact'
import { ErrorNotice } from './standalone-page.tsx'
import type { Query } from './use-query.ts'

interface LoadedOptions<Data> {
  query: Pick<Query<Data>, 'data' | 'failure' | 'refetch'>
  children(data: Data): ComponentChildren
}

/** Renders the data of a query, or its loading or error state. */
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
