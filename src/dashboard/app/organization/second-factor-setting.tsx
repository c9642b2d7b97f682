import type { Organization } from '../../../access/organizations/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Loaded } from '../components/loaded.tsx'
import { showToast } from '../components/toast.tsx'
import { useRoute } from '../components/use-query.ts'
import { request } from '../request.ts'
import { Section } from '../components/section.tsx'

/** Lets an owner require a passkey or an authenticator app of every member. */
export function SecondFactorSetting({ organization: id }: { organization: string }) {
  const organization = useRoute('GET /api/organizations/:organizationId', { organizationId: id })
  return (
    <Section id="second-factor" title="Second factor">
      <Loaded query={organization}>
        {data => (
          <Setting organization={data} onChange={edited => organization.change(() => edited)} />
        )}
      </Loaded>
    </Section>
  )
}

interface SettingOptions {
  organization: Organization
  onChange(organization: Organization): void
}

function Setting({ organization, onChange }: SettingOptions) {
  const { id, requiresSecondFactor, membersWithoutSecondFactor: without } = organization
  const require = (requiresSecondFactor: boolean) =>
    request('PATCH /api/organizations/:organizationId', {
      organizationId: id,
      requiresSecondFactor,
    })
  const lead =
    without === 0
      ? 'All members have a passkey or an authenticator app.'
      : `Members without a passkey or an authenticator app: ${without.toLocaleString()}.`
  return (
    <>
      <p class="note">
        {requiresSecondFactor && <span class="badge badge-good">Required</span>} {lead}
      </p>
      <div class="actions">
        {requiresSecondFactor ? (
          <ConfirmButton
            isQuiet
            action="Stop requiring it"
            title="Stop requiring a second factor?"
            lead="Members reach the organization with a password alone again."
            yes="Stop requiring it"
            send={() => require(false)}
            onDone={onChange}
          />
        ) : (
          <ConfirmButton
            isQuiet
            action="Require a second factor"
            title="Require a second factor?"
            lead="Members who signed in with a password alone lose access until they use a passkey or a code. Their devices receive no notifications until then."
            yes="Require it"
            send={() => require(true)}
            onDone={edited => {
              onChange(edited)
              showToast('Members need a passkey or a code from now on.')
            }}
          />
        )}
      </div>
    </>
  )
}
