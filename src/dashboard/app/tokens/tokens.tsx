import { useState } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Checkbox, Fieldset, Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { Item, LastUse, Section } from '../components/item.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import type { ManagementToken, NewManagementToken } from '../../../access/tokens/schema.ts'
import { request } from '../request.ts'

/** The own tokens of the account, or those of an organization. */
type TokenOwner = 'account' | { organization: string }

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
  const tokens = usePages(`GET ${toPath(owner)}`, { ...toPlace(owner), limit: 20 })
  const [made, setMade] = useState<NewManagementToken>()
  return (
    <Section id="tokens" title="Tokens">
      <p class="note">{lead}</p>
      {made && (
        <SecretOnce
          title={
            <>
              Token <bdi>{made.name}</bdi> created
            </>
          }
          label="Token"
          secret={made.token}
          onDone={() => setMade(undefined)}
        />
      )}
      <div class={isPrimary ? 'primary-action' : 'actions'}>
        <CreateForm
          owner={owner}
          organizations={organizations}
          isPrimary={isPrimary}
          onCreated={token => {
            setMade(token)
            void tokens.refetch()
          }}
        />
      </div>
      <PagedList pages={tokens} empty={<p class="note">No tokens</p>}>
        {token => (
          <Token
            key={token.id}
            token={token}
            owner={owner}
            onWithdrawn={() => {
              void tokens.refetch()
              if (made?.id === token.id) setMade(undefined)
              showToast('Token withdrawn. Its next request is refused.')
            }}
          />
        )}
      </PagedList>
    </Section>
  )
}

interface TokenOptions {
  token: ManagementToken
  owner: TokenOwner
  onWithdrawn(): void
}

function Token({ token, owner, onWithdrawn }: TokenOptions) {
  const { id, name, prefix, lastFour, role, projects, createdBy, lastUsedAt, expiresAt } = token
  return (
    <Item
      title={<bdi>{name}</bdi>}
      details={[
        <code>
          {prefix}…{lastFour}
        </code>,
        owner !== 'account' && (
          <>
            by <bdi>{createdBy.name}</bdi>
          </>
        ),
        projects !== null && (
          <>
            only <bdi>{projects.map(project => project.name).join(', ') || 'deleted projects'}</bdi>
          </>
        ),
        <LastUse at={lastUsedAt} />,
        <Moment word={token.isExpired ? 'expired' : 'expires'} at={expiresAt} />,
      ]}
      badge={role}
    >
      <ConfirmButton
        action="Withdraw"
        title="Withdraw"
        name={name}
        lead="Programs that use this token are refused from their next request on."
        yes="Withdraw"
        isQuiet
        send={() => request(`DELETE ${toPath(owner)}/:tokenId`, { ...toPlace(owner), tokenId: id })}
        onDone={onWithdrawn}
      />
    </Item>
  )
}

interface CreateFormOptions extends Pick<TokensOptions, 'owner' | 'organizations'> {
  isPrimary: boolean
  onCreated(token: NewManagementToken): void
}

function CreateForm({ owner, organizations, isPrimary, onCreated }: CreateFormOptions) {
  const roles = ROLES.filter(
    (role, rank) => rank === 0 || organizations.some(own => isAtLeast(own.role, role)),
  )
  const projects = organizations.flatMap(own => own.projects)
  return (
    <FormButton
      isPrimary={isPrimary}
      action="Create token"
      submit="Create token"
      send={value => {
        const chosen = projects.filter(({ id }) => value(id) !== '')
        return request(`POST ${toPath(owner)}`, {
          ...toPlace(owner),
          name: value('name'),
          role: ROLES.find(role => role === value('role')) ?? 'viewer',
          projects: chosen.length === 0 ? null : chosen.map(({ id }) => id),
          expiresInDays: Number(value('expiresInDays')),
        })
      }}
      onDone={onCreated}
    >
      <Field name="name" label="Name" hint="The program that uses it, such as “Deployment”." />
      <Select
        name="role"
        label="Role"
        value="viewer"
        hint="The token never does more than your own role allows."
        options={roles.map(role => ({ value: role, text: role }))}
      />
      <Field
        name="expiresInDays"
        label="Expires after days"
        isNumber
        value="90"
        hint="1 to 365 days."
      />
      {projects.length > 0 && (
        <Fieldset legend="Limit to projects (optional)" name="projects">
          {projects.map(({ id, name }) => (
            <Checkbox key={id} name={id}>
              <bdi>{name}</bdi>
            </Checkbox>
          ))}
        </Fieldset>
      )}
    </FormButton>
  )
}

/** The routes of both owners take and return the same, but for the organization. */
function toPath(owner: TokenOwner) {
  const path = owner === 'account' ? '/api/tokens' : '/api/organizations/:organizationId/tokens'
  return path as '/api/organizations/:organizationId/tokens'
}

function toPlace(owner: TokenOwner) {
  return { organizationId: owner === 'account' ? undefined : owner.organization } as {
    organizationId: string
  }
}
