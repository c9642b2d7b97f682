import { useState } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Checkbox, Fieldset, Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { usePages } from '../components/use-pages.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import {
  createToken,
  readTokens,
  withdrawToken,
  type ManagementToken,
  type NewManagementToken,
  type TokenOwner,
} from './api.ts'

type Organization = Account['organizations'][number]

interface TokensOptions {
  owner: TokenOwner
  /** The purpose of a token, in full sentences. */
  lead: string
  /** The organizations that a token can reach. */
  organizations: readonly Organization[]
  /** True if creating a token is the main action of the page. */
  isPrimary?: boolean
}

/** The management tokens of an account or an organization, with actions to create and end them. */
export function Tokens({ owner, lead, organizations, isPrimary = false }: TokensOptions) {
  const tokens = usePages(JSON.stringify(owner), cursor => readTokens(owner, cursor))
  const [made, setMade] = useState<NewManagementToken>()
  return (
    <section class="section" aria-labelledby="tokens">
      <h2 id="tokens">{t('account.tokens')}</h2>
      <p class="note">{lead}</p>
      {made && (
        <SecretOnce
          title={toRich({ key: 'account.tokenCreated', values: { name: <bdi>{made.name}</bdi> } })}
          label={t('account.token')}
          secret={made.token}
          onDone={() => setMade(undefined)}
        />
      )}
      <div class={isPrimary ? 'primary-action' : 'actions'}>
        <InlineForm isPrimary={isPrimary} action={t('account.createToken')}>
          {close => (
            <CreateForm
              owner={owner}
              organizations={organizations}
              onCreated={({ token: secret, ...token }) => {
                close()
                setMade({ ...token, token: secret })
                tokens.change(items => [token, ...items])
              }}
            />
          )}
        </InlineForm>
      </div>
      <PagedList pages={tokens} empty={<p class="note">{t('account.noTokens')}</p>}>
        {token => (
          <Item
            key={token.id}
            token={token}
            owner={owner}
            onWithdrawn={() => {
              tokens.change(items => items.filter(({ id }) => id !== token.id))
              if (made?.id === token.id) setMade(undefined)
              showToast({ message: t('account.tokenWithdrawn') })
            }}
          />
        )}
      </PagedList>
    </section>
  )
}

interface ItemOptions {
  token: ManagementToken
  owner: TokenOwner
  onWithdrawn(): void
}

function Item({ token, owner, onWithdrawn }: ItemOptions) {
  const { id, name, prefix, lastFour, role, projects, createdBy, lastUsedAt, expiresAt } = token
  return (
    <li>
      <div class="item-main">
        <bdi>{name}</bdi>
        <p class="item-details">
          <code>
            {prefix}…{lastFour}
          </code>
          {owner !== 'account' && (
            <>
              {' · '}
              {toRich({ key: 'account.tokenBy', values: { name: <bdi>{createdBy.name}</bdi> } })}
            </>
          )}
          {projects !== null && (
            <>
              {' · '}
              {toRich({
                key: 'account.tokenOnly',
                values: {
                  projects: (
                    <bdi>
                      {projects.map(project => project.name).join(', ') ||
                        t('account.deletedProjects')}
                    </bdi>
                  ),
                },
              })}
            </>
          )}
          {' · '}
          {lastUsedAt === null
            ? t('account.tokenNeverUsed')
            : toRich({
                key: 'account.tokenLastUsed',
                values: { time: <Timestamp atMs={Date.parse(lastUsedAt)} hasDate /> },
              })}
          {' · '}
          {toRich({
            key: token.isExpired ? 'account.tokenExpired' : 'account.tokenExpires',
            values: { time: <Timestamp atMs={Date.parse(expiresAt)} hasDate /> },
          })}
        </p>
      </div>
      <span class="badge">{t(`words.role.${role}`)}</span>
      <span class="item-actions">
        <ConfirmButton
          action={t('words.withdraw')}
          title={toRich({ key: 'account.withdrawName', values: { name: <bdi>{name}</bdi> } })}
          lead={t('account.withdrawLead')}
          yes={t('words.withdraw')}
          isQuiet
          send={() => withdrawToken(owner, id)}
          onDone={onWithdrawn}
        />
      </span>
    </li>
  )
}

interface CreateFormOptions extends Pick<TokensOptions, 'owner' | 'organizations'> {
  onCreated(token: NewManagementToken): void
}

function CreateForm({ owner, organizations, onCreated }: CreateFormOptions) {
  const roles = ROLES.filter(
    (role, rank) => rank === 0 || organizations.some(own => isAtLeast(own.role, role)),
  )
  const projects = organizations.flatMap(own => own.projects)
  return (
    <Form
      action={t('account.createToken')}
      send={value => {
        const chosen = projects.filter(({ id }) => value(id) !== '')
        return withVerification(() =>
          createToken(owner, {
            name: value('name'),
            role: ROLES.find(role => role === value('role')) ?? 'viewer',
            projects: chosen.length === 0 ? null : chosen.map(({ id }) => id),
            expiresInDays: Number(value('expiresInDays')),
          }),
        )
      }}
      onDone={onCreated}
    >
      <Field
        name="name"
        label={t('words.name')}
        autocomplete="off"
        hint={t('account.tokenNameHint')}
      />
      <Select
        name="role"
        label={t('words.role')}
        value="viewer"
        hint={t('account.tokenRoleHint')}
        options={roles.map(role => ({ value: role, text: t(`words.role.${role}`) }))}
      />
      <Field
        name="expiresInDays"
        label={t('account.expiresAfter')}
        type="number"
        autocomplete="off"
        value="90"
        hint={t('account.expiresAfterHint')}
      />
      {projects.length > 0 && (
        <Fieldset legend={t('account.limitToProjects')} name="projects">
          {projects.map(({ id, name }) => (
            <Checkbox key={id} name={id}>
              <bdi>{name}</bdi>
            </Checkbox>
          ))}
        </Fieldset>
      )}
    </Form>
  )
}
