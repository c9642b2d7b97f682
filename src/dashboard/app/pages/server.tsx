import type { AccountPage } from '../app.tsx'
import { AccountFrame } from '../parts/frame.tsx'
import { PATHS } from '../paths.ts'

export default function ServerPage({ account }: AccountPage) {
  return (
    <AccountFrame account={account} path={PATHS.server} title="Server">
      <h1 class="page-title">Server</h1>
    </AccountFrame>
  )
}
