import { useLocation } from 'preact-iso'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { toUsersPath } from '../paths.ts'
import { eraseUser, type User } from './api.ts'
import { t, toRich } from '../locales/translate.tsx'

/** Erases a user permanently. */
export function EraseUser({ project, user }: { project: string; user: User }) {
  const { route } = useLocation()
  return (
    <section class="section" aria-labelledby="erase">
      <h2 id="erase">{t('users.erase')}</h2>
      <p class="note">{t('users.eraseNote')}</p>
      <ConfirmButton
        action={t('users.eraseThis')}
        title={toRich({ key: 'users.eraseTitle', values: { user: <bdi>{user.userId}</bdi> } })}
        lead={t('users.eraseLead')}
        yes={t('users.eraseYes')}
        send={() => eraseUser(project, user.userId)}
        onDone={({ events }) => {
          showToast({ message: t('users.erased', { events }) })
          route(toUsersPath(project), true)
        }}
      />
    </section>
  )
}
