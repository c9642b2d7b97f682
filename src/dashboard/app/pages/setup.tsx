import { useLocation } from 'preact-iso'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField } from '../components/fields.tsx'
import { useRoute } from '../components/query.tsx'
import { StandalonePage } from '../components/standalone-page.tsx'
import { PATHS, toProjectPath } from '../paths.ts'
import { request } from '../request.ts'
import { linkSecret, parseLinkSecret } from '../link-secret.ts'
import { hasJustSetUp, setAccount } from '../session.ts'

/** Creates the owner's account with the secret of the setup link. */
export default function Setup() {
  const { route } = useLocation()
  const { failure } = useRoute('GET /api/setup')

  function goOn(account: Account) {
    linkSecret.value = ''
    hasJustSetUp.value = true
    setAccount(account)
    const project = account.organizations[0]?.projects[0]
    route(project ? toProjectPath('start', project.id) : PATHS.home, true)
  }

  if (failure?.code === 'not_found') {
    return (
      <StandalonePage
        title="Already set up"
        lead="This server already has an owner, so the link no longer works."
      >
        <p>
          <a class="button" href={PATHS.signIn}>
            Sign in
          </a>
        </p>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage title="Welcome" lead="Create the first account. It owns this server.">
      <Form
        action="Create account"
        send={value =>
          request('POST /api/setup', {
            token: linkSecret.value || parseLinkSecret(value('token')),
            name: value('name'),
            email: value('email'),
            password: value('password'),
            ...(value('organization').trim() && { organization: value('organization') }),
            ...(value('project').trim() && { project: value('project') }),
          })
        }
        onDone={goOn}
      >
        {!linkSecret.value && (
          <Field
            name="token"
            label="Setup link"
            hint="The server prints it when it starts. Paste it here."
          />
        )}
        <Field name="name" label="Your name" autocomplete="name" />
        <Field name="email" label="E-mail" type="email" autocomplete="username" />
        <NewPasswordField />
        <Field
          name="organization"
          label="Organization (optional)"
          isOptional
          autocomplete="organization"
        />
        <Field name="project" label="Project (optional)" isOptional />
      </Form>
    </StandalonePage>
  )
}
