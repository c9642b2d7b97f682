import { accountId, request, type Result } from '../request.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { clearSession } from '../session.ts'
import { Section } from '../components/section.tsx'

/** Returns the file. A refusal is requested again, in the form of the other requests. */
async function readExport(): Promise<Result<Blob>> {
  const headers = { 'X-Account': accountId }
  const response = await fetch('/api/me/export', { headers }).catch(() => undefined)
  return response?.ok ? { ok: true, data: await response.blob() } : request('GET /api/me/export')
}

/** The export of the account's own data, and its deletion. */
export function AccountData() {
  return (
    <Section id="data" title="Your data">
      <p class="note">
        The file has everything that this server stores about your account, without secrets.
      </p>
      <div class="actions">
        <ActionButton
          action="Export your data"
          send={readExport}
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
          send={() => request('DELETE /api/me')}
          onDone={() => {
            clearSession()
            showToast('Your account is deleted.')
          }}
        />
      </div>
    </Section>
  )
}
