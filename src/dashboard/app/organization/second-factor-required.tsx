import type { Account } from '../../../accounts/schema.ts'
import { Passkeys } from '../account/passkeys.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { addSecondFactor } from '../account/api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { CodeField } from '../components/code-field.tsx'
import { Form } from '../components/form.tsx'
import { canUsePasskeys, verifyWithPasskey } from '../passkeys/api.ts'
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
      {passkeys > 0 && canUsePasskeys() && (
        <div class="actions">
          <ActionButton action="Use a passkey" send={verifyWithPasskey} onDone={setAccount} />
        </div>
      )}
      {hasSecondFactor && (
        <Form action="Continue" send={value => addSecondFactor(value('code'))} onDone={setAccount}>
          <CodeField
            label="Code"
            hint="The six digits of your authenticator app, or one of your recovery codes."
          />
        </Form>
      )}
      {hasNone && (
        <>
          <Passkeys />
          <SecondFactor account={account} />
        </>
      )}
    </div>
  )
}
