import { useState } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { CodeField } from '../components/code-field.tsx'
import { Field, Form } from '../components/form.tsx'
import { t } from '../locales/translate.tsx'
import { request } from '../request.ts'
import { isInstalled, setAccount } from '../session.ts'

/** Signs in with an e-mail address and a password, and with a code if the account requires one. */
export function PasswordForm() {
  const [needsCode, setNeedsCode] = useState(false)
  if (needsCode) return <CodeForm onCancel={() => setNeedsCode(false)} />
  return (
    <Form
      key="password"
      action={t('auth.signIn')}
      send={value =>
        request<Account | { needs: 'code' }>('POST', '/api/session', {
          email: value('email'),
          password: value('password'),
          isInstalled: isInstalled(),
        })
      }
      onDone={data => ('needs' in data ? setNeedsCode(true) : setAccount(data))}
    >
      <Field name="email" label={t('words.email')} type="email" autocomplete="username webauthn" />
      <Field
        name="password"
        label={t('common.password')}
        type="password"
        autocomplete="current-password"
      />
    </Form>
  )
}

function CodeForm({ onCancel }: { onCancel(): void }) {
  return (
    <>
      <Form
        key="code"
        action={t('auth.signIn')}
        send={value => request<Account>('POST', '/api/session/code', { code: value('code') })}
        onDone={setAccount}
      >
        <CodeField label={t('words.code')} hint={t('words.codeHint')} />
      </Form>
      <p class="note">
        <button type="button" class="quiet-button" onClick={onCancel}>
          {t('auth.back')}
        </button>
      </p>
    </>
  )
}
