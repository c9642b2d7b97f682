/** The result of one check. `message` states the result, and what to do about a problem. */
export interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
}

const toFinding = (state: Finding['state']) => (check: string, message: string) => ({
  check,
  state,
  message,
})

export const ok = toFinding('ok')
export const warning = toFinding('warning')
export const failed = toFinding('failed')
