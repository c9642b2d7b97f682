import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { useQuery } from '../components/use-query.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import {
  addPasskey,
  canUsePasskeys,
  readPasskeys,
  removePasskey,
  renamePasskey,
  type Passkey,
} from '../passkeys/api.ts'
import { t, toRich } from '../locales/translate.tsx'
import { loadSession } from '../session.ts'

/** The passkeys of the account. `onChange` is called after a removal, which ends sessions. */
export function Passkeys({ onChange = () => {} }: { onChange?: () => void }) {
  const passkeys = useQuery('', readPasskeys)

  function reload(message: string) {
    showToast({ message })
    void passkeys.refetch()
    void loadSession()
  }

  return (
    <section class="section" aria-labelledby="passkeys">
      <h2 id="passkeys">{t('account.passkeys')}</h2>
      <p class="note">{t('account.passkeysLead')}</p>
      <Loaded query={passkeys}>
        {({ items }) => (
          <>
            <ul class="items">
              {items.map(passkey => (
                <li key={passkey.id}>
                  <About passkey={passkey} />
                  <span class="item-actions">
                    <InlineForm
                      action={t('words.rename')}
                      label={t('words.renameName', { name: passkey.name })}
                    >
                      {close => (
                        <Form
                          action={t('words.save')}
                          send={value => renamePasskey(passkey.id, value('name'))}
                          onDone={() => {
                            close()
                            reload(t('account.passkeyRenamed'))
                          }}
                        >
                          <Field
                            name="name"
                            label={t('words.name')}
                            autocomplete="off"
                            value={passkey.name}
                          />
                        </Form>
                      )}
                    </InlineForm>
                    <ConfirmButton
                      isQuiet
                      action={t('words.remove')}
                      title={toRich({
                        key: 'words.removeName',
                        values: { name: <bdi>{passkey.name}</bdi> },
                      })}
                      lead={t('account.removePasskeyLead')}
                      yes={t('account.removePasskey')}
                      send={() => removePasskey(passkey.id)}
                      onDone={() => {
                        reload(t('account.passkeyRemoved'))
                        onChange()
                      }}
                    />
                  </span>
                </li>
              ))}
            </ul>
            {canUsePasskeys() ? (
              <div class="actions">
                <InlineForm action={t('account.addPasskey')}>
                  {close => (
                    <Form
                      action={t('words.continue')}
                      send={value => withVerification(() => addPasskey(value('name')))}
                      onDone={() => {
                        close()
                        reload(t('account.passkeyAdded'))
                      }}
                    >
                      <Field
                        name="name"
                        label={t('words.name')}
                        autocomplete="off"
                        hint={t('account.passkeyNameHint')}
                        value={t('account.passkeyName', { number: items.length + 1 })}
                      />
                    </Form>
                  )}
                </InlineForm>
              </div>
            ) : (
              <p class="note">{t('account.noPasskeysHere')}</p>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

function About({ passkey }: { passkey: Passkey }) {
  const { name, isSynced, isDisabled, createdAt, lastUsedAt } = passkey
  return (
    <div class="item-main">
      <bdi>{name}</bdi> {isSynced && <span class="badge">{t('account.synced')}</span>}{' '}
      {isDisabled && <span class="badge badge-bad">{t('account.disabled')}</span>}
      {isDisabled && <p class="item-details">{t('account.passkeyCopied')}</p>}
      <p class="item-details">
        {toRich({
          key: lastUsedAt === null ? 'account.neverUsedAdded' : 'account.usedAdded',
          values: {
            used: lastUsedAt !== null && <Timestamp atMs={Date.parse(lastUsedAt)} hasDate />,
            added: <Timestamp atMs={Date.parse(createdAt)} hasDate />,
          },
        })}
      </p>
    </div>
  )
}
