import type { ProblemCode } from '../../../access/openid/flow.ts'

const TEXTS: Record<ProblemCode, (label: string) => string> = {
  cancelled: label => `You cancelled at ${label}.`,
  expired: () => 'This took too long, or was opened twice. Try again.',
  unavailable: label =>
    `${label} does not respond as it should. Use another way, or try again in a minute.`,
  invalid: label =>
    `The response of ${label} was not valid. If this happens again, tell your operator.`,
  clock: label =>
    `The clocks of ${label} and of this server differ by more than 5 minutes. Tell your operator.`,
  unverified: label => `${label} has not verified your e-mail address. Verify it there first.`,
  unknown: label =>
    `You have no account here. Ask an admin to invite you, then use ${label} again.`,
  otherAccount: label => `Your identity at ${label} belongs to another account here.`,
  otherIdentity: label =>
    `An account with your e-mail address is connected to another identity at ${label}. Ask your operator.`,
  address: label => `Your e-mail address at ${label} is not the one of this account.`,
  invite: () =>
    'This invite was used, has expired, or is for another e-mail address. Ask for another one.',
  groups: label => `${label} did not send your groups, because they are too many.`,
  stale: label => `${label} did not ask for your password again. Try another way.`,
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
  return (
    <p class="notice" role="alert">
      {TEXTS[code](provider?.label ?? 'The provider')}
    </p>
  )
}

function isProblemCode(text: string): text is ProblemCode {
  return Object.hasOwn(TEXTS, text)
}
