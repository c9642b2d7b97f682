import { useEffect, useRef, useState } from 'preact/hooks'
import type { Result, Failure } from '../request.ts'

export interface Query<Data> {
  /** Undefined until it has been read; what was known stays when reading again fails. */
  data: Data | undefined
  failure: Failure | undefined
  /** Reads again; what is shown stays meanwhile. */
  refetch(): Promise<void>
  /** Shows what the server has answered to an act. */
  setData(data: Data): void
}

/** What the server answers about `key`, read once for each; answers that are overtaken are dropped. */
export function useQuery<Data>(key: string, ask: () => Promise<Result<Data>>): Query<Data> {
  const [data, setData] = useState<Data>()
  const [failure, setFailure] = useState<Failure>()
  const turn = useRef(0)

  async function refetch() {
    const mine = ++turn.current
    const result = await ask()
    if (mine !== turn.current) return
    if (result.ok) setData(() => result.data)
    setFailure(result.ok ? undefined : result.failure)
  }

  function replaceData(data: Data) {
    turn.current += 1
    setData(() => data)
    setFailure(undefined)
  }

  useEffect(() => {
    setData(undefined)
    setFailure(undefined)
    void refetch()
    return () => {
      turn.current += 1
    }
  }, [key])

  return { data, failure, refetch, setData: replaceData }
}
