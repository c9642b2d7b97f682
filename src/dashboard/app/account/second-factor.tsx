import { useState } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { CodeBlock } from '../components/copy-button.tsx'
import { CodeField } from '../components/fields.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Form } from '../components/form.tsx'
import { QrCode } from '../components/qr-code.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { showToast } from '../components/toast.tsx'
import { loadSession, setAccount } from '../session.ts'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import { QuietButton } from '../components/buttons.tsx'
import { Section } from '../components/item.tsx'

type TotpSecret = Data<'POST /api/second-factor'>

/** The authenticator app of the account, and its recovery codes. */
export function SecondFactor({ account: { credentials } }: { account: Account }) {
  const [secret, setSecret] = useState<TotpSecret>()
  const [codes, setCodes] = useState<readonly string[]>()
  if (!credentials.hasPassword) return null
  return (
    <Section id="second-factor" title="Authenticator app">
      {codes && (
        <SecretOnce
          title="Recovery codes"
          label="Each works once, if you lose your phone"
          secret={codes.join('\n')}
          advice="Copy them now: they are shown only once. Print them, or store them in your password manager."
          onDone={() => setCodes(undefined)}
        />
      )}
      {credentials.hasSecondFactor ? (
        <>
          <p class="note">
            <span class="badge badge-good">On</span> Your password requires a code. Recovery codes
            left: {credentials.recoveryCodes.toLocaleString()}.
          </p>
          <div class="actions">
            <ActionButton
              action={
                credentials.recoveryCodes > 0 ? 'Replace recovery codes' : 'Create recovery codes'
              }
              send={() => request('POST /api/second-factor/recovery-codes')}
              onDone={created => {
                setCodes(created.codes)
                void loadSession()
              }}
            />
            <ConfirmButton
              isQuiet
              action="Remove"
              title="Remove the authenticator app?"
              lead="Your password alone signs you in again. The recovery codes are deleted."
              yes="Remove app"
              send={() => request('DELETE /api/second-factor')}
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
            showToast('Your password requires a code from now on.')
          }}
          onCancel={() => setSecret(undefined)}
        />
      ) : (
        <>
          <p class="note">
            Require a code of an app on your phone after your password. A passkey needs no code.
          </p>
          <div class="actions">
            <ActionButton
              action="Set up"
              send={() => request('POST /api/second-factor')}
              onDone={setSecret}
            />
          </div>
        </>
      )}
    </Section>
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
      <div class="phone-way" data-once>
        <QrCode qr={qr} />
        <p class="page-lead">
          Scan this code with an authenticator app. Then enter the six digits that the app shows.
        </p>
      </div>
      <CodeBlock label="Or type this key into the app" text={secret} />
      <Form
        action="Turn on"
        send={value => request('POST /api/second-factor/confirm', { code: value('code') })}
        onDone={onDone}
      >
        <CodeField label="Code" />
      </Form>
      <QuietButton onClick={onCancel}>Cancel</QuietButton>
    </>
  )
}
