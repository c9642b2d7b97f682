import type { Account } from '../../../access/sign-in/schema.ts'
import { Passkeys } from '../account/passkeys.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { Ways } from '../components/verification-ways.tsx'
import { setAccount } from '../session.ts'

interface SecondFactorRequiredOptions {
  account: Account
  /** The name of the organization that requires it. */
  name: string
}

/** Leads a member to a second factor, without which the organization cannot be reached. */
export function SecondFactorRequired({ account, name }: SecondFactorRequiredOptions) {
  const { passkeys, hasSecondFactor } = account.credentials
  const hasNone = passkeys === 0 && !hasSecondFactor
  return (
    <div class="settings">
      <h1 class="page-title">One more step</h1>
      <p class="page-lead">
        <bdi>{name}</bdi> requires a passkey or an authenticator app, and you signed in without one.{' '}
        {hasNone ? 'Add one' : 'Use it'} here to continue.
      </p>
      <Ways needsFactor account={account} onDone={setAccount} />
      {hasNone && (
        <>
          <Passkeys />
          <SecondFactor account={account} />
        </>
      )}
    </div>
  )
}
