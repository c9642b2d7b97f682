import type { AccountPage } from '../app.tsx'
import { AccountFrame } from '../parts/frame.tsx'
import { PATHS } from '../paths.ts'

export default function NotificationsPage({ account }: AccountPage) {
  return (
    <AccountFrame account={account} path={PATHS.notifications} title="Notifications">
      <h1 class="page-title">Notifications</h1>
    </AccountFrame>
  )
}
