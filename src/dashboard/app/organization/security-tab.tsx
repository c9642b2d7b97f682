import { SignInRules } from '../openid/sign-in-rules.tsx'
import type { TabOptions } from './general-tab.tsx'
import { SecondFactorSetting } from './second-factor-setting.tsx'

/** The required second factor of an organization, and its sign-in rules. */
export function SecurityTab({ account, own }: TabOptions) {
  return (
    <>
      {own.role === 'owner' ? (
        <SecondFactorSetting organization={own.id} />
      ) : (
        <p class="note">Only owners can require a second factor.</p>
      )}
      <SignInRules organization={own.id} role={own.role} isOperator={account.person.isOperator} />
    </>
  )
}
