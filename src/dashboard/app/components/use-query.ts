import { useEffect, useRef, useState } from 'preact/hooks'
import type { Result, Failure } from '../request.ts'

export interface Query<Data> {
  /** Undefined until loaded. Kept when loading again fails. */
  data: Data | undefined
  failure: Failure | undefined
  /** Loads again. The current data stays until then. */
  refetch(): Promise<void>
  /** Replaces the data with the response to a change. */
  setData(data: Data): void
}

/** Loads data once for each `key`. Results that arrive out of order are dropped. */
export function useQuery<Data>(key: string, ask: () => Promise<Result<Data>>): Query<Data> {
  const [data, setData] = useState<Data>()
  const [failure, setFailure] = useState<Failure>()
  const latest = useRef(0)

  async function refetch() {
    const request = ++latest.current
    const result = await ask()
    if (request !== latest.current) return
    if (result.ok) setData(() => result.data)
    setFailure(result.ok ? undefined : result.failure)
  }

  function replaceData(data: Data) {
    latest.current += 1
    setData(() => data)
    setFailure(undefined)
  }

  useEffect(() => {
    setData(undefined)
    setFailure(undefined)
    void refetch()
    return () => {
      latest.current += 1
    }
  }, [key])

  return { data, failure, refetch, setData: replaceData }
}
