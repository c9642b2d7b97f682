import type { Organization } from '../../../accounts/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Loaded } from '../components/loaded.tsx'
import { showToast } from '../components/toast.tsx'
import { useQuery } from '../components/use-query.ts'
import { readOrganization, requireSecondFactor } from './api.ts'
import { t } from '../locales/translate.tsx'

/** Lets an owner require a passkey or an authenticator app of every member. */
export function SecondFactorSetting({ organization: id }: { organization: string }) {
  const organization = useQuery(id, () => readOrganization(id))
  return (
    <section class="section" aria-labelledby="second-factor">
      <h2 id="second-factor">{t('organization.secondFactor')}</h2>
      <Loaded query={organization}>
        {data => <Setting organization={data} onChange={organization.setData} />}
      </Loaded>
    </section>
  )
}

interface SettingOptions {
  organization: Organization
  onChange(organization: Organization): void
}

function Setting({ organization, onChange }: SettingOptions) {
  const { id, requiresSecondFactor, membersWithoutSecondFactor: without } = organization
  const lead =
    without === 0
      ? t('organization.allHaveFactor')
      : t('organization.withoutFactor', { count: without })
  return (
    <>
      <p class="note">
        {requiresSecondFactor && <span class="badge badge-good">{t('organization.required')}</span>}{' '}
        {lead}
      </p>
      <div class="actions">
        {requiresSecondFactor ? (
          <ConfirmButton
            isQuiet
            action={t('organization.stopRequiring')}
            title={t('organization.stopRequiringTitle')}
            lead={t('organization.stopRequiringLead')}
            yes={t('organization.stopRequiring')}
            send={() => requireSecondFactor(id, false)}
            onDone={onChange}
          />
        ) : (
          <ConfirmButton
            isQuiet
            action={t('organization.require')}
            title={t('organization.requireTitle')}
            lead={t('organization.requireLead')}
            yes={t('organization.requireIt')}
            send={() => requireSecondFactor(id, true)}
            onDone={edited => {
              onChange(edited)
              showToast({ message: t('organization.factorRequired') })
            }}
          />
        )}
      </div>
    </>
  )
}
