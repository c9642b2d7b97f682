import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Checkbox } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { Loaded } from '../components/loaded.tsx'
import { showToast } from '../components/toast.tsx'
import { useQuery } from '../components/use-query.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import {
  addProvider,
  checkProvider,
  deleteProvider,
  editProvider,
  readProviders,
  type Provider,
} from './api.ts'

/** The OpenID Connect providers of the server, for its operator. */
export function Providers() {
  const query = useQuery('', readProviders)
  const refetch = () => void query.refetch()
  return (
    <section class="section" aria-labelledby="providers">
      <h2 id="providers">Sign-in providers</h2>
      <Loaded query={query}>
        {({ items }) => (
          <>
            {items.length === 0 && (
              <p class="note">
                No providers yet. With one, members sign in with OpenID Connect, for example at
                Keycloak, Authentik or Google.
              </p>
            )}
            <ul class="items">
              {items.map(provider => (
                <ProviderItem key={provider.name} provider={provider} onChange={refetch} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
      <InlineForm action="Add a provider">
        {close => (
          <Form
            action="Add"
            send={value =>
              withVerification(() =>
                addProvider({
                  name: value('name'),
                  label: value('label'),
                  issuer: value('issuer'),
                  clientId: value('clientId'),
                  clientSecret: value('clientSecret'),
                  ...toOptional(value),
                }),
              )
            }
            onDone={() => {
              close()
              showToast({ message: 'Provider added. Check it next.' })
              refetch()
            }}
          >
            <Field
              name="name"
              label="Name"
              autocomplete="off"
              hint="A part of the redirect URL, such as company."
            />
            <Field name="label" label="Label of the button" autocomplete="off" />
            <Field
              name="issuer"
              label="Issuer"
              type="url"
              autocomplete="off"
              hint="A URL like https://login.example.com."
            />
            <Field name="clientId" label="Client ID" autocomplete="off" />
            <Field
              name="clientSecret"
              label="Client secret"
              type="password"
              autocomplete="new-password"
              hint="It is stored encrypted, and never shown again."
            />
            <OptionalFields />
          </Form>
        )}
      </InlineForm>
    </section>
  )
}

function ProviderItem({ provider, onChange }: { provider: Provider; onChange(): void }) {
  const { name, label, issuer, isFromSettings, isTrusted, isFailing } = provider
  const [result, setResult] = useState<{ problem: string | null }>()
  return (
    <li>
      <div class="item-main">
        <bdi>{label}</bdi> {isTrusted && <span class="badge">Trusted</span>}{' '}
        {isFailing && !result && <span class="badge badge-bad">Did not respond</span>}
        <p class="item-details">
          <bdi>{issuer}</bdi>
        </p>
        <p class="item-details">
          Redirect URL: <bdi>{provider.redirectUrl}</bdi>
        </p>
        <p class="item-details">
          Back-channel logout URL: <bdi>{provider.logoutUrl}</bdi>
        </p>
        {isFromSettings && <p class="item-details">Set up by variables of the server.</p>}
        <p role="status" class={result?.problem ? 'issue' : 'item-details'}>
          {result && (result.problem ?? 'The provider responds.')}
        </p>
      </div>
      <span class="item-actions">
        <ActionButton action="Check" send={() => checkProvider(name)} onDone={setResult} />
        {!isFromSettings && (
          <ConfirmButton
            action="Delete"
            title={
              <>
                Delete <bdi>{label}</bdi>?
              </>
            }
            lead="Nobody can sign in there any more, and its sign-in rules are deleted. Accounts, memberships and open sessions stay."
            yes="Delete"
            isQuiet
            send={() => deleteProvider(name)}
            onDone={onChange}
          />
        )}
      </span>
      {!isFromSettings && (
        <InlineForm action="Edit" label={`Edit ${label}`}>
          {close => (
            <Form
              action="Save"
              send={value =>
                withVerification(() =>
                  editProvider(name, {
                    label: value('label'),
                    clientId: value('clientId'),
                    ...(value('clientSecret') && { clientSecret: value('clientSecret') }),
                    ...toOptional(value),
                  }),
                )
              }
              onDone={() => {
                close()
                onChange()
              }}
            >
              <Field name="label" label="Label of the button" autocomplete="off" value={label} />
              <Field
                name="clientId"
                label="Client ID"
                autocomplete="off"
                value={provider.clientId}
              />
              <Field
                name="clientSecret"
                label="New client secret"
                type="password"
                autocomplete="new-password"
                hint="Leave it empty to keep the secret."
                isOptional
              />
              <OptionalFields provider={provider} />
            </Form>
          )}
        </InlineForm>
      )}
    </li>
  )
}

function OptionalFields({ provider }: { provider?: Provider }) {
  return (
    <>
      <Field
        name="scopes"
        label="Scopes"
        autocomplete="off"
        value={provider?.scopes ?? 'openid email profile'}
      />
      <Field
        name="groupsClaim"
        label="Claim with the groups"
        autocomplete="off"
        value={provider?.groupsClaim ?? 'groups'}
      />
      <Checkbox name="isTrusted" isOn={provider?.isTrusted ?? false}>
        Connect existing accounts by verified e-mail address alone. Its administrators can then use
        every account except those of operators.
      </Checkbox>
    </>
  )
}

function toOptional(value: (name: string) => string) {
  return {
    scopes: value('scopes'),
    groupsClaim: value('groupsClaim'),
    isTrusted: value('isTrusted') === 'on',
  }
}
