import { useLocation } from 'preact-iso'
import type { Account } from '../../../accounts/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { PATHS } from '../paths.ts'
import { loadSession } from '../session.ts'
import { deleteOrganization, leaveOrganization } from './api.ts'
import { CreateOrganization } from './create-organization.tsx'
import { Projects } from './projects.tsx'
import { RenameOrganization } from './rename-organization.tsx'

/** The membership of the account in the organization, as all tabs take it. */
export interface TabOptions {
  account: Account
  own: Account['organizations'][number]
}

/** The projects of an organization, its name and its end. */
export function GeneralTab({ account, own }: TabOptions) {
  const { route } = useLocation()
  const isOwner = own.role === 'owner'

  async function goHome(message: string) {
    route(PATHS.account, true)
    await loadSession()
    showToast({ message })
  }

  return (
    <>
      <Projects own={own} />
      {account.person.isOperator && (
        <section class="section" aria-labelledby="another">
          <h2 id="another">{t('organization.new')}</h2>
          <CreateOrganization />
        </section>
      )}
      <section class="section" aria-labelledby="end">
        <h2 id="end">{t(isOwner ? 'organization.end' : 'organization.leave')}</h2>
        <div class="actions">
          {isOwner && <RenameOrganization organization={own.id} name={own.name} />}
          <ConfirmButton
            action={t('organization.leave')}
            title={toRich({
              key: 'organization.leaveName',
              values: { name: <bdi>{own.name}</bdi> },
            })}
            lead={t('organization.leaveLead')}
            yes={t('organization.leave')}
            isQuiet
            send={() => leaveOrganization(own.id)}
            onDone={() => void goHome(t('organization.left', { name: own.name }))}
          />
          {isOwner && (
            <ConfirmButton
              action={t('organization.delete')}
              title={toRich({ key: 'words.deleteName', values: { name: <bdi>{own.name}</bdi> } })}
              lead={t('organization.deleteLead')}
              yes={t('words.deletePermanently')}
              send={() => deleteOrganization(own.id)}
              onDone={() => void goHome(t('organization.deleted', { name: own.name }))}
            />
          )}
        </div>
      </section>
    </>
  )
}
