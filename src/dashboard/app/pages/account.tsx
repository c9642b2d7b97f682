import type { AccountPage } from '../app.tsx'
import { AccountFrame } from '../parts/frame.tsx'
import { PATHS } from '../paths.ts'

export default function AccountPage({ account }: AccountPage) {
  return (
    <AccountFrame account={account} path={PATHS.account} title="Account">
      <h1 class="page-title">Account</h1>
    </AccountFrame>
  )
}
