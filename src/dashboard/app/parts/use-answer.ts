import { useEffect, useRef, useState } from 'preact/hooks'
import type { Answer, Failure } from '../request.ts'

export interface Asked<Data> {
  /** Undefined until it has been read; what was known stays when reading again fails. */
  data: Data | undefined
  failure: Failure | undefined
  /** Reads again; what is shown stays meanwhile. */
  read(): Promise<void>
  /** Shows what the server has answered to an act. */
  take(data: Data): void
}

/** What the server answers about `key`, read once for each; answers that are overtaken are dropped. */
export function useAnswer<Data>(key: string, ask: () => Promise<Answer<Data>>): Asked<Data> {
  const [data, setData] = useState<Data>()
  const [failure, setFailure] = useState<Failure>()
  const turn = useRef(0)

  async function read() {
    const mine = ++turn.current
    const answer = await ask()
    if (mine !== turn.current) return
    if (answer.ok) setData(() => answer.data)
    setFailure(answer.ok ? undefined : answer.failure)
  }

  function take(data: Data) {
    turn.current += 1
    setData(() => data)
    setFailure(undefined)
  }

  useEffect(() => {
    setData(undefined)
    setFailure(undefined)
    void read()
    return () => {
      turn.current += 1
    }
  }, [key])

  return { data, failure, read, take }
}
