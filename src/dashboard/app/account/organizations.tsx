import type { Account } from '../../../access/sign-in/schema.ts'
import { CreateOrganization } from '../organization/create-organization.tsx'
import { toOrganizationPath } from '../paths.ts'
import { Section } from '../components/section.tsx'

/** The organizations of the account. Operators can create another one. */
export function Organizations({ account: { person, organizations } }: { account: Account }) {
  return (
    <Section id="organizations" title="Organizations">
      {organizations.length === 0 && <p class="note">You are not a member of any organization.</p>}
      <ul class="items">
        {organizations.map(({ id, name, role }) => (
          <li key={id}>
            <div class="item-main">
              <a href={toOrganizationPath(id)}>
                <bdi>{name}</bdi>
              </a>
            </div>
            <span class="badge">{role}</span>
          </li>
        ))}
      </ul>
      {person.isOperator && <CreateOrganization />}
    </Section>
  )
}
