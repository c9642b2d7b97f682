import { ConfirmButton } from '../components/confirm-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Item, Section } from '../components/item.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { showToast } from '../components/toast.tsx'
import type { Role } from '../../../access/guard/permissions.ts'
import { isAtLeast, ROLES } from '../session.ts'
import type { SignInRule } from '../../../access/openid/schema.ts'
import { request } from '../request.ts'

/** The rules that give roles to groups and domains. Nothing is shown without a provider. */
export function SignInRules({
  organization,
  role,
  isOperator,
}: {
  organization: string
  role: Role
  isOperator: boolean
}) {
  const query = useRoute('GET /api/organizations/:organizationId/sign-in-rules', {
    organizationId: organization,
  })
  const replaceRules = (rules: SignInRule[]) =>
    request('PUT /api/organizations/:organizationId/sign-in-rules', {
      organizationId: organization,
      rules,
    })
  const mayEdit = isOperator && isAtLeast(role, 'owner')
  if (query.data && query.data.providers.length === 0 && query.data.rules.length === 0) return null

  const isSame = (one: SignInRule, other: SignInRule) =>
    one.provider === other.provider && one.kind === other.kind && one.value === other.value

  return (
    <Section id="sign-in-rules" title="Sign-in rules">
      <p class="note">
        A rule gives a role to an account that signs in. A membership from a rule ends at the next
        sign-in to which no rule applies. Memberships from invites stay.
        {!mayEdit && ' An owner who is an operator of the server edits the rules.'}
      </p>
      <Loaded query={query}>
        {({ rules, providers }) => {
          const toLabel = (name: string) =>
            providers.find(provider => provider.name === name)?.label ?? name
          return (
            <>
              <ul class="items">
                {rules.map(rule => (
                  <Item
                    key={`${rule.provider} ${rule.kind} ${rule.value}`}
                    title={
                      <>
                        {rule.kind === 'group' ? 'Group' : 'Addresses in'} <bdi>{rule.value}</bdi>
                      </>
                    }
                    details={
                      <>
                        at <bdi>{toLabel(rule.provider)}</bdi>
                      </>
                    }
                    badge={rule.role}
                  >
                    {mayEdit && (
                      <ConfirmButton
                        action="Remove"
                        title="Remove the rule for"
                        name={rule.value}
                        lead="Memberships that only this rule gave end at the next sign-in of their accounts."
                        yes="Remove"
                        isQuiet
                        send={() => replaceRules(rules.filter(other => !isSame(other, rule)))}
                        onDone={() => void query.refetch()}
                      />
                    )}
                  </Item>
                ))}
              </ul>
              {rules.length === 0 && <p class="note">No sign-in rules yet</p>}
              {mayEdit && providers.length > 0 && (
                <FormButton
                  action="Add a rule"
                  submit="Add"
                  send={value =>
                    replaceRules([
                      ...rules,
                      {
                        provider: value('provider'),
                        kind: value('kind') as SignInRule['kind'],
                        value: value('value'),
                        role: value('role') as SignInRule['role'],
                      },
                    ])
                  }
                  onDone={() => {
                    showToast('Rule added. It applies at the next sign-in.')
                    void query.refetch()
                  }}
                >
                  <Select
                    name="provider"
                    label="Provider"
                    options={providers.map(({ name, label }) => ({
                      value: name,
                      text: label,
                      isUserText: true,
                    }))}
                  />
                  <Select
                    name="kind"
                    label="Applies to"
                    options={[
                      { value: 'group', text: 'Members of a group at the provider' },
                      { value: 'domain', text: 'Verified e-mail addresses of a domain' },
                    ]}
                  />
                  <Field name="value" label="Group or domain" />
                  <Select
                    name="role"
                    label="Role"
                    value="viewer"
                    options={ROLES.map(one => ({ value: one, text: one }))}
                  />
                </FormButton>
              )}
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}
