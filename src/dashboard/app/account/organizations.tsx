import type { Account } from '../../../access/sign-in/schema.ts'
import { CreateOrganization } from '../organization/create-organization.tsx'
import { toOrganizationPath } from '../paths.ts'

/** The organizations of the account. Operators can create another one. */
export function Organizations({ account: { person, organizations } }: { account: Account }) {
  return (
    <section class="section" aria-labelledby="organizations">
      <h2 id="organizations">Organizations</h2>
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
    </section>
  )
}
