import { useState } from 'preact/hooks'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField } from '../components/new-password-field.tsx'
import { StandalonePage } from '../components/standalone-page.tsx'
import { t } from '../locales/translate.tsx'
import { PATHS } from '../paths.ts'
import { request } from '../request.ts'
import { linkSecret, parseLinkSecret } from '../link-secret.ts'
import { loadSession } from '../session.ts'

/** Sets a new password with the secret of a reset link. */
export default function Reset() {
  const [isDone, setDone] = useState(false)
  if (isDone) {
    return (
      <StandalonePage title={t('auth.passwordChanged')} lead={t('auth.signedOutEverywhere')}>
        <p>
          <a class="button" href={PATHS.signIn}>
            {t('auth.signIn')}
          </a>
        </p>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage title={t('auth.newPassword')} lead={t('auth.newPasswordLead')}>
      <Form
        action={t('auth.setPassword')}
        send={value =>
          request('POST', '/api/reset', {
            token: linkSecret.value || parseLinkSecret(value('token')),
            password: value('password'),
          })
        }
        onDone={() => {
          linkSecret.value = ''
          // The session in this browser may have ended, too.
          void loadSession()
          setDone(true)
        }}
      >
        {!linkSecret.value && (
          <Field
            name="token"
            label={t('auth.resetLink')}
            autocomplete="off"
            hint={t('auth.resetLinkHint')}
          />
        )}
        <NewPasswordField label={t('auth.newPassword')} />
      </Form>
    </StandalonePage>
  )
}
