import type { ComponentChildren } from 'preact'
import { Trouble } from './page.tsx'
import type { Asked } from './use-answer.ts'

interface LoadedOptions<Data> {
  of: Pick<Asked<Data>, 'data' | 'failure' | 'read'>
  children(data: Data): ComponentChildren
}

/** What has been read; until then that it is being read, or why it could not be and the way to try again. */
export function Loaded<Data>({ of: { data, failure, read }, children }: LoadedOptions<Data>) {
  return (
    <>
      {failure && <Trouble failure={failure} onRetry={() => void read()} />}
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
