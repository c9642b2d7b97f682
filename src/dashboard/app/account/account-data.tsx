import { request } from '../request.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { clearSession } from '../session.ts'

/** The export of the account's own data, and its deletion. */
export function AccountData() {
  return (
    <section class="section" aria-labelledby="data">
      <h2 id="data">Your data</h2>
      <p class="note">
        The file has everything that this server stores about your account, without secrets.
      </p>
      <div class="actions">
        <ActionButton
          action="Export your data"
          send={() => request<Blob>('GET', '/api/me/export', undefined, true)}
          onDone={file => {
            const href = URL.createObjectURL(file)
            Object.assign(document.createElement('a'), {
              href,
              download: 'tidings-account.json',
            }).click()
          }}
        />
        <ConfirmButton
          action="Delete account"
          title="Delete your account?"
          lead="You are signed out everywhere and leave every organization. Audit logs keep your name for a year. This cannot be undone."
          yes="Delete permanently"
          send={() => request('DELETE', '/api/me')}
          onDone={() => {
            clearSession()
            showToast({ message: 'Your account is deleted.' })
          }}
        />
      </div>
    </section>
  )
}
