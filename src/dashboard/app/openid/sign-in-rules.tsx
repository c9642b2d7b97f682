import { ConfirmButton } from '../components/confirm-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { Loaded } from '../components/loaded.tsx'
import { showToast } from '../components/toast.tsx'
import { useQuery } from '../components/use-query.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import type { Role } from '../../../accounts/permissions.ts'
import { t, toRich } from '../locales/translate.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import { readRules, replaceRules, type SignInRule } from './api.ts'

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
  const query = useQuery(organization, () => readRules(organization))
  const mayEdit = isOperator && isAtLeast(role, 'owner')
  if (query.data && query.data.providers.length === 0 && query.data.rules.length === 0) return null

  const isSame = (one: SignInRule, other: SignInRule) =>
    one.provider === other.provider && one.kind === other.kind && one.value === other.value

  return (
    <section class="section" aria-labelledby="sign-in-rules">
      <h2 id="sign-in-rules">{t('organization.rules')}</h2>
      <p class="note">
        {t('organization.rulesLead')}
        {!mayEdit && <> {t('organization.rulesEditors')}</>}
      </p>
      <Loaded query={query}>
        {({ rules, providers }) => {
          const toLabel = (name: string) =>
            providers.find(provider => provider.name === name)?.label ?? name
          return (
            <>
              <ul class="items">
                {rules.map(rule => (
                  <li key={`${rule.provider} ${rule.kind} ${rule.value}`}>
                    <div class="item-main">
                      {toRich({
                        key:
                          rule.kind === 'group'
                            ? 'organization.ruleGroup'
                            : 'organization.ruleDomain',
                        values: { value: <bdi>{rule.value}</bdi> },
                      })}
                      <p class="item-details">
                        {toRich({
                          key: 'organization.ruleAt',
                          values: { provider: <bdi>{toLabel(rule.provider)}</bdi> },
                        })}
                      </p>
                    </div>
                    <span class="badge">{t(`words.role.${rule.role}`)}</span>
                    {mayEdit && (
                      <span class="item-actions">
                        <ConfirmButton
                          action={t('words.remove')}
                          title={toRich({
                            key: 'organization.removeRule',
                            values: { value: <bdi>{rule.value}</bdi> },
                          })}
                          lead={t('organization.removeRuleLead')}
                          yes={t('words.remove')}
                          isQuiet
                          send={() =>
                            replaceRules(
                              organization,
                              rules.filter(other => !isSame(other, rule)),
                            )
                          }
                          onDone={() => void query.refetch()}
                        />
                      </span>
                    )}
                  </li>
                ))}
              </ul>
              {rules.length === 0 && <p class="note">{t('organization.noRules')}</p>}
              {mayEdit && providers.length > 0 && (
                <InlineForm action={t('organization.addRule')}>
                  {close => (
                    <Form
                      action={t('words.add')}
                      send={value =>
                        withVerification(() =>
                          replaceRules(organization, [
                            ...rules,
                            {
                              provider: value('provider'),
                              kind: value('kind') as SignInRule['kind'],
                              value: value('value'),
                              role: value('role') as SignInRule['role'],
                            },
                          ]),
                        )
                      }
                      onDone={() => {
                        close()
                        showToast({ message: t('organization.ruleAdded') })
                        void query.refetch()
                      }}
                    >
                      <Select
                        name="provider"
                        label={t('organization.provider')}
                        options={providers.map(({ name, label }) => ({
                          value: name,
                          text: label,
                          isUserText: true,
                        }))}
                      />
                      <Select
                        name="kind"
                        label={t('organization.appliesTo')}
                        options={[
                          { value: 'group', text: t('organization.kindGroup') },
                          { value: 'domain', text: t('organization.kindDomain') },
                        ]}
                      />
                      <Field
                        name="value"
                        label={t('organization.groupOrDomain')}
                        autocomplete="off"
                      />
                      <Select
                        name="role"
                        label={t('words.role')}
                        value="viewer"
                        options={ROLES.map(one => ({ value: one, text: t(`words.role.${one}`) }))}
                      />
                    </Form>
                  )}
                </InlineForm>
              )}
            </>
          )
        }}
      </Loaded>
    </section>
  )
}
