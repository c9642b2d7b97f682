/** One line of the check-up: what was looked at, how it is, and what to do where it is not well. */
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
