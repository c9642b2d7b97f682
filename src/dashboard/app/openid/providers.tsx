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
import { t, toRich } from '../locales/translate.tsx'

/** The OpenID Connect providers of the server, for its operator. */
export function Providers() {
  const query = useQuery('', readProviders)
  const refetch = () => void query.refetch()
  return (
    <section class="section" aria-labelledby="providers">
      <h2 id="providers">{t('server.providers')}</h2>
      <Loaded query={query}>
        {({ items }) => (
          <>
            {items.length === 0 && <p class="note">{t('server.noProviders')}</p>}
            <ul class="items">
              {items.map(provider => (
                <ProviderItem key={provider.name} provider={provider} onChange={refetch} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
      <InlineForm action={t('server.addProvider')}>
        {close => (
          <Form
            action={t('words.add')}
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
              showToast({ message: t('server.providerAdded') })
              refetch()
            }}
          >
            <Field
              name="name"
              label={t('words.name')}
              autocomplete="off"
              hint={t('server.providerNameHint')}
            />
            <Field name="label" label={t('server.label')} autocomplete="off" />
            <Field
              name="issuer"
              label={t('server.issuer')}
              type="url"
              autocomplete="off"
              hint={t('server.issuerHint')}
            />
            <Field name="clientId" label={t('server.clientId')} autocomplete="off" />
            <Field
              name="clientSecret"
              label={t('server.clientSecret')}
              type="password"
              autocomplete="new-password"
              hint={t('server.clientSecretHint')}
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
        <bdi>{label}</bdi> {isTrusted && <span class="badge">{t('server.trusted')}</span>}{' '}
        {isFailing && !result && <span class="badge badge-bad">{t('server.didNotRespond')}</span>}
        <p class="item-details">
          <bdi>{issuer}</bdi>
        </p>
        <p class="item-details">
          {toRich({
            key: 'server.redirectUrl',
            values: { url: <bdi>{provider.redirectUrl}</bdi> },
          })}
        </p>
        <p class="item-details">
          {toRich({ key: 'server.logoutUrl', values: { url: <bdi>{provider.logoutUrl}</bdi> } })}
        </p>
        {isFromSettings && <p class="item-details">{t('server.fromSettings')}</p>}
        <p role="status" class={result?.problem ? 'issue' : 'item-details'}>
          {result && (result.problem ?? t('server.responds'))}
        </p>
      </div>
      <span class="item-actions">
        <ActionButton
          action={t('server.check')}
          send={() => checkProvider(name)}
          onDone={setResult}
        />
        {!isFromSettings && (
          <ConfirmButton
            action={t('words.delete')}
            title={toRich({ key: 'words.deleteName', values: { name: <bdi>{label}</bdi> } })}
            lead={t('server.deleteProviderLead')}
            yes={t('words.delete')}
            isQuiet
            send={() => deleteProvider(name)}
            onDone={onChange}
          />
        )}
      </span>
      {!isFromSettings && (
        <InlineForm action={t('words.edit')} label={t('server.editName', { name: label })}>
          {close => (
            <Form
              action={t('words.save')}
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
              <Field name="label" label={t('server.label')} autocomplete="off" value={label} />
              <Field
                name="clientId"
                label={t('server.clientId')}
                autocomplete="off"
                value={provider.clientId}
              />
              <Field
                name="clientSecret"
                label={t('server.newClientSecret')}
                type="password"
                autocomplete="new-password"
                hint={t('server.keepSecret')}
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
        label={t('server.scopes')}
        autocomplete="off"
        value={provider?.scopes ?? 'openid email profile'}
      />
      <Field
        name="groupsClaim"
        label={t('server.groupsClaim')}
        autocomplete="off"
        value={provider?.groupsClaim ?? 'groups'}
      />
      <Checkbox name="isTrusted" isOn={provider?.isTrusted ?? false}>
        {t('server.trust')}
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
