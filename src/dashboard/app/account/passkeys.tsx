import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Item, LastUse, Section } from '../components/item.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import type { ComponentChildren } from 'preact'
import type { PasskeyInfo } from '../../../access/passkeys/schema.ts'
import { addPasskey, canUsePasskeys } from '../passkeys/api.ts'
import { request } from '../request.ts'
import { loadSession } from '../session.ts'

/** The passkeys of the account. `onChange` is called after a removal, which ends sessions. */
export function Passkeys({ onChange = () => {} }: { onChange?: () => void }) {
  const passkeys = useRoute('GET /api/passkeys')

  function reload(message: string) {
    showToast(message)
    void passkeys.refetch()
    void loadSession()
  }

  return (
    <Section id="passkeys" title="Passkeys">
      <p class="note">
        Sign in with your fingerprint, face or PIN. Add one on each device, or one that your
        password manager syncs.
      </p>
      <Loaded query={passkeys}>
        {({ items }) => (
          <>
            <ul class="items">
              {items.map(passkey => (
                <Passkey key={passkey.id} passkey={passkey}>
                  <FormButton
                    action="Rename"
                    label={`Rename ${passkey.name}`}
                    submit="Save"
                    send={value =>
                      request('PATCH /api/passkeys/:passkeyId', {
                        passkeyId: passkey.id,
                        name: value('name'),
                      })
                    }
                    onDone={() => reload('Passkey renamed.')}
                  >
                    <Field name="name" label="Name" value={passkey.name} />
                  </FormButton>
                  <ConfirmButton
                    isQuiet
                    action="Remove"
                    title="Remove"
                    name={passkey.name}
                    lead="It no longer signs you in, and other sessions that it made end. Delete it in your password manager, too."
                    yes="Remove passkey"
                    send={() =>
                      request('DELETE /api/passkeys/:passkeyId', { passkeyId: passkey.id })
                    }
                    onDone={() => {
                      reload('Passkey removed.')
                      onChange()
                    }}
                  />
                </Passkey>
              ))}
            </ul>
            {canUsePasskeys() ? (
              <div class="actions">
                <FormButton
                  action="Add a passkey"
                  submit="Continue"
                  send={value => addPasskey(value('name'))}
                  onDone={() => reload('Passkey added. You can sign in with it from now on.')}
                >
                  <Field
                    name="name"
                    label="Name"
                    hint="To tell it from others, such as “Phone” or “Security key”."
                    value={`Passkey ${items.length + 1}`}
                  />
                </FormButton>
              </div>
            ) : (
              <p class="note">
                This browser has no passkeys here. They require HTTPS and a recent browser.
              </p>
            )}
          </>
        )}
      </Loaded>
    </Section>
  )
}

interface PasskeyOptions {
  passkey: PasskeyInfo
  /** The actions. */
  children: ComponentChildren
}

function Passkey({ passkey, children }: PasskeyOptions) {
  const { name, isSynced, isDisabled, createdAt, lastUsedAt } = passkey
  return (
    <Item
      title={
        <>
          <bdi>{name}</bdi> {isSynced && <span class="badge">Synced</span>}{' '}
          {isDisabled && <span class="badge badge-bad">Disabled</span>}
          {isDisabled && (
            <p class="item-details">
              A copy of this passkey was used, so it is no longer accepted. Remove it and add a new
              one.
            </p>
          )}
        </>
      }
      details={[<Moment word="added" at={createdAt} />, <LastUse at={lastUsedAt} />]}
    >
      {children}
    </Item>
  )
}
