import { t } from '../locales/translate.tsx'
import { request } from '../request.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { clearSession } from '../session.ts'

/** The export of the account's own data, and its deletion. */
export function AccountData() {
  return (
    <section class="section" aria-labelledby="data">
      <h2 id="data">{t('account.data')}</h2>
      <p class="note">{t('account.dataLead')}</p>
      <div class="actions">
        <a class="quiet-button" href="/api/me/export" download>
          {t('account.export')}
        </a>
        <ConfirmButton
          action={t('account.deleteAccount')}
          title={t('account.deleteAccountTitle')}
          lead={t('account.deleteAccountLead')}
          yes={t('words.deletePermanently')}
          send={() => request('DELETE', '/api/me')}
          onDone={() => {
            clearSession()
            showToast({ message: t('account.accountDeleted') })
          }}
        />
      </div>
    </section>
  )
}
