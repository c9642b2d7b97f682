import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import type { InvitePreview } from '../../../accounts/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField } from '../components/new-password-field.tsx'
import { StandalonePage, ErrorNotice } from '../components/standalone-page.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { ProviderButtons } from '../openid/provider-buttons.tsx'
import { useSignInOptions } from '../openid/use-sign-in-options.ts'
import { PATHS, toSignInPath } from '../paths.ts'
import { request, type Result } from '../request.ts'
import { linkSecret, parseLinkSecret } from '../link-secret.ts'
import { loadSession, session } from '../session.ts'

/** Accepts an invitation, with the signed-in account or with a new one. */
export default function InvitePage() {
  const { route } = useLocation()
  const [invite, look] = useInvite(linkSecret.value)
  const options = useSignInOptions()

  async function goOn() {
    linkSecret.value = ''
    await loadSession()
    route(PATHS.home, true)
  }
  const accept = (account?: object) =>
    request('POST', '/api/invites/accept', { token: linkSecret.value, ...account })

  if (!linkSecret.value) return <Paste />
  if (!invite)
    return (
      <StandalonePage
        title={t('auth.invitation')}
        lead={<span class="skeleton">{t('common.loading')}</span>}
      />
    )
  if (!invite.ok) {
    return (
      <StandalonePage title={t('auth.invitation')}>
        <ErrorNotice failure={invite.failure} onRetry={look} />
      </StandalonePage>
    )
  }
  const { organization, role, invitedBy, email } = invite.data
  const lead = toRich({
    key: 'auth.invited',
    values: {
      name: <bdi>{invitedBy.name}</bdi>,
      organization: <bdi>{organization.name}</bdi>,
      role: t(`words.role.${role}`),
    },
  })
  if (session.value.kind === 'signed_in') {
    const { person } = session.value.account
    return (
      <StandalonePage title={t('auth.joinName', { organization: organization.name })} lead={lead}>
        <p>
          {toRich({
            key: 'auth.signedInAs',
            values: { name: <bdi>{person.name}</bdi>, email: <bdi>{person.email}</bdi> },
          })}
        </p>
        <Form action={t('auth.join')} send={() => accept()} onDone={goOn}>
          {null}
        </Form>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage title={t('auth.joinName', { organization: organization.name })} lead={lead}>
      {options.hasPasswords && (
        <Form
          action={t('auth.createAndJoin')}
          send={value =>
            accept({
              name: value('name'),
              email: value('email'),
              password: value('password'),
            })
          }
          onDone={goOn}
        >
          <Field name="name" label={t('auth.yourName')} autocomplete="name" />
          <Field
            name="email"
            label={t('words.email')}
            type="email"
            autocomplete="username"
            value={email ?? ''}
          />
          <NewPasswordField />
        </Form>
      )}
      <ProviderButtons
        options={options}
        next={PATHS.home}
        invite={linkSecret.value}
        onDone={() => void goOn()}
      />
      <p class="note">
        {toRich({
          key: 'auth.haveAccount',
          elements: { link: text => <a href={toSignInPath(PATHS.invite)}>{text}</a> },
        })}
      </p>
    </StandalonePage>
  )
}

function Paste() {
  return (
    <StandalonePage title={t('auth.invitation')} lead={t('auth.pasteInvitation')}>
      <Form
        action={t('words.continue')}
        send={async value => ({ ok: true, data: parseLinkSecret(value('token')) })}
        onDone={secret => {
          linkSecret.value = secret
        }}
      >
        <Field name="token" label={t('auth.invitationLink')} autocomplete="off" />
      </Form>
    </StandalonePage>
  )
}

/** Loads the invitation of a secret; undefined until loaded. */
function useInvite(token: string): [Result<InvitePreview> | undefined, () => void] {
  const [invite, setInvite] = useState<Result<InvitePreview>>()
  const look = () => {
    setInvite(undefined)
    if (token) void request<InvitePreview>('POST', '/api/invites/look', { token }).then(setInvite)
  }
  useEffect(look, [token])
  return [invite, look]
}
