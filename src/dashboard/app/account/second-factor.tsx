import { useState } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { CodeBlock } from '../components/code-block.tsx'
import { CodeField } from '../components/code-field.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Form } from '../components/form.tsx'
import { QrCode } from '../components/qr-code.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { showToast } from '../components/toast.tsx'
import { t } from '../locales/translate.tsx'
import { loadSession, setAccount } from '../session.ts'
import {
  confirmSecondFactor,
  createRecoveryCodes,
  createSecondFactor,
  removeSecondFactor,
  type TotpSecret,
} from './api.ts'

/** The authenticator app of the account, and its recovery codes. */
export function SecondFactor({ account: { credentials } }: { account: Account }) {
  const [secret, setSecret] = useState<TotpSecret>()
  const [codes, setCodes] = useState<readonly string[]>()
  if (!credentials.hasPassword) return null
  return (
    <section class="section" aria-labelledby="second-factor">
      <h2 id="second-factor">{t('account.app')}</h2>
      {codes && (
        <SecretOnce
          title={t('account.recoveryCodes')}
          label={t('account.recoveryCodesLabel')}
          secret={codes.join('\n')}
          advice={t('account.recoveryCodesAdvice')}
          onDone={() => setCodes(undefined)}
        />
      )}
      {credentials.hasSecondFactor ? (
        <>
          <p class="note">
            <span class="badge badge-good">{t('account.on')}</span>{' '}
            {t('account.appOn', { count: credentials.recoveryCodes })}
          </p>
          <div class="actions">
            <ActionButton
              action={t(
                credentials.recoveryCodes > 0 ? 'account.replaceCodes' : 'account.createCodes',
              )}
              send={createRecoveryCodes}
              onDone={created => {
                setCodes(created.codes)
                void loadSession()
              }}
            />
            <ConfirmButton
              isQuiet
              action={t('words.remove')}
              title={t('account.removeAppTitle')}
              lead={t('account.removeAppLead')}
              yes={t('account.removeApp')}
              send={removeSecondFactor}
              onDone={setAccount}
            />
          </div>
        </>
      ) : secret ? (
        <SetUp
          secret={secret}
          onDone={account => {
            setSecret(undefined)
            setAccount(account)
            showToast({ message: t('account.appAdded') })
          }}
          onCancel={() => setSecret(undefined)}
        />
      ) : (
        <>
          <p class="note">{t('account.appLead')}</p>
          <div class="actions">
            <ActionButton
              action={t('account.setUp')}
              send={createSecondFactor}
              onDone={setSecret}
            />
          </div>
        </>
      )}
    </section>
  )
}

interface SetUpOptions {
  secret: TotpSecret
  onDone(account: Account): void
  onCancel(): void
}

function SetUp({ secret: { secret, qr }, onDone, onCancel }: SetUpOptions) {
  return (
    <>
      <div class="phone-way">
        <QrCode qr={qr} />
        <p class="page-lead">{t('account.scan')}</p>
      </div>
      <CodeBlock label={t('account.typeKey')} text={secret} />
      <Form
        action={t('account.turnOn')}
        send={value => confirmSecondFactor(value('code'))}
        onDone={onDone}
      >
        <CodeField label={t('words.code')} />
      </Form>
      <button type="button" class="quiet-button" onClick={onCancel}>
        {t('common.cancel')}
      </button>
    </>
  )
}
