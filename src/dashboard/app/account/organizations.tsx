import type { Account } from '../../../accounts/schema.ts'
import { t } from '../locales/translate.tsx'
import { CreateOrganization } from '../organization/create-organization.tsx'
import { toOrganizationPath } from '../paths.ts'

/** The organizations of the account. Operators can create another one. */
export function Organizations({ account: { person, organizations } }: { account: Account }) {
  return (
    <section class="section" aria-labelledby="organizations">
      <h2 id="organizations">{t('account.organizations')}</h2>
      {organizations.length === 0 && <p class="note">{t('account.noOrganizations')}</p>}
      <ul class="items">
        {organizations.map(({ id, name, role }) => (
          <li key={id}>
            <div class="item-main">
              <a href={toOrganizationPath(id)}>
                <bdi>{name}</bdi>
              </a>
            </div>
            <span class="badge">{t(`words.role.${role}`)}</span>
          </li>
        ))}
      </ul>
      {person.isOperator && <CreateOrganization />}
    </section>
  )
}
