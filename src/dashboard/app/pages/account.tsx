import { AccountData } from '../account/account-data.tsx'
import { Organizations } from '../account/organizations.tsx'
import { Passkeys } from '../account/passkeys.tsx'
import { Password } from '../account/password.tsx'
import { Profile } from '../account/profile.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { Sessions } from '../account/sessions.tsx'
import { Layout } from '../components/layout.tsx'
import { usePages } from '../components/use-pages.ts'
import { Connections } from '../openid/connections.tsx'
import { PATHS } from '../paths.ts'
import { Tokens } from '../tokens/tokens.tsx'
import type { AccountPageProps } from './props.ts'

/** The account: its profile, ways to sign in, sessions and organizations. */
export default function AccountPage({ account }: AccountPageProps) {
  const sessions = usePages('GET /api/sessions', { limit: 20 })
  return (
    <Layout account={account} path={PATHS.account} title="Account">
      <div class="settings">
        <Profile account={account} />
        <Passkeys onChange={sessions.refresh} />
        <Password account={account} onChange={sessions.refresh} />
        <SecondFactor account={account} />
        <Connections />
        <Sessions sessions={sessions} />
        <Tokens
          owner="account"
          lead="Programs use a personal token to manage your organizations with the API."
          organizations={account.organizations}
        />
        <Organizations account={account} />
        <AccountData />
      </div>
    </Layout>
  )
}
