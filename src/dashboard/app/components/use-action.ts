import { useState } from 'preact/hooks'
import type { Failure, Result } from '../request.ts'

/** Sends one request at a time, and keeps the failure of the last one. */
export function useAction() {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  /** Sends a request. Resolves with undefined while another one is on its way. */
  async function act<Data>(send: () => Promise<Result<Data>>): Promise<Result<Data> | undefined> {
    if (isBusy) return undefined
    setBusy(true)
    setFailure(undefined)
    const result = await send()
    setBusy(false)
    setFailure(result.ok ? undefined : result.failure)
    return result
  }
  return { act, isBusy, failure }
}
