import type { ProblemCode } from '../../../openid/problem.ts'
import { t } from '../locales/translate.tsx'

const CODES: Record<ProblemCode, true> = {
  cancelled: true,
  expired: true,
  unavailable: true,
  invalid: true,
  clock: true,
  unverified: true,
  unknown: true,
  otherAccount: true,
  otherIdentity: true,
  address: true,
  invite: true,
  groups: true,
  stale: true,
}

/** Explains why a visit to a provider failed, from the query of the page. */
export function VisitProblem({
  query,
  providers,
}: {
  query: Record<string, string>
  providers: readonly { name: string; label: string }[]
}) {
  const code = query['problem'] ?? ''
  if (!isProblemCode(code)) return null
  const provider = providers.find(({ name }) => name === query['provider'])
  const label = provider?.label ?? t('openid.theProvider')
  return (
    <p class="notice" role="alert">
      {t(`openid.${code}`, { label })}
    </p>
  )
}

function isProblemCode(text: string): text is ProblemCode {
  return Object.hasOwn(CODES, text)
}
