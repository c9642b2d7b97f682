import type { Account } from '../../../accounts/schema.ts'
import { Passkeys } from '../account/passkeys.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { addSecondFactor } from '../account/api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { CodeField } from '../components/code-field.tsx'
import { Form } from '../components/form.tsx'
import { t, toRich } from '../locales/translate.tsx'
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
      <h1 class="page-title">{t('organization.oneMoreStep')}</h1>
      <p class="page-lead">
        {toRich({
          key: hasNone ? 'organization.addFactor' : 'organization.useFactor',
          values: { name: <bdi>{name}</bdi> },
        })}
      </p>
      {passkeys > 0 && canUsePasskeys() && (
        <div class="actions">
          <ActionButton
            action={t('words.usePasskey')}
            send={verifyWithPasskey}
            onDone={setAccount}
          />
        </div>
      )}
      {hasSecondFactor && (
        <Form
          action={t('words.continue')}
          send={value => addSecondFactor(value('code'))}
          onDone={setAccount}
        >
          <CodeField label={t('words.code')} hint={t('words.codeHint')} />
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
