import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { writeAudit } from '../audit/audit.ts'
import { transact } from '../../database/pool.ts'
import { sqlState, UNIQUE_VIOLATION, type Tx } from '../../database/sql.ts'
import { PROXY } from '../../base/config/openid.ts'
import { parseEmail } from '../../base/config/values.ts'
import { Fault } from '../../base/errors.ts'
import { succeed, succeedFile } from '../../http/call.ts'
import { FileOf, SuccessOf } from '../../http/envelope.ts'
import { Timestamp } from '../../http/schema-parts.ts'
import { toId } from '../../base/ids.ts'
import { findAccountByEmail, getAccount, lockAccount, lockOwnAccount } from '../sign-in/account.ts'
import { limitAddressChanges } from '../sign-in/address-tries.ts'
import { deleteAccount } from './account-deletion.ts'
import { exportAccount } from './account-export.ts'
import { toSignedOut } from '../guard/secret.ts'
import { succeedRead, type CallOn, type SessionGuard } from '../guard/guard.ts'
import { Email, Name, NoData } from '../guard/schema.ts'
import { Account } from '../sign-in/schema.ts'
import { authorize } from '../guard/authorize.ts'

const tags = ['Account']
const FIELDS = ['name', 'email'] as const

const AccountChange = Type.Object(
  { name: Type.Optional(Name), email: Type.Optional(Email) },
  { examples: [{ name: 'Ada' }] },
)

/** The document of `exportAccount`. */
const AccountExport = Type.Object({
  exportedAt: Timestamp,
  account: Type.Object({ id: Type.String(), name: Type.String(), email: Type.String() }),
  memberships: Type.Array(Type.Object({})),
  sessions: Type.Array(Type.Object({})),
  auditEntries: Type.Array(Type.Object({})),
})
const JSON_FILE = {
  description: 'A file with everything that the server stores about your account, without secrets.',
  contentType: 'application/json',
}

/** Routes of the signed-in account. */
export function accountRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'accounts.account' })
    .use(guard)
    .get('/api/me', ({ call }) => succeedRead(call, sql => getAccount(sql, call.admitted)), {
      account: 'account.read',
      response: { 200: SuccessOf(Account, 'The account and its organizations.') },
      detail: { operationId: 'getAccount', summary: 'Get your account', tags },
    })
    .patch('/api/me', async ({ call, body }) => succeed(call, 200, await editAccount(call, body)), {
      account: 'account.edit',
      body: AccountChange,
      response: { 200: SuccessOf(Account, 'The account with its changes.') },
      detail: {
        operationId: 'editAccount',
        summary: 'Change your name or e-mail address',
        description:
          'A new e-mail address requires a verification within the last 10 minutes. An account can try 10 addresses in 24 hours.',
        tags,
      },
    })
    .delete(
      '/api/me',
      async ({ call }) => {
        await transact(call.pool, tx => deleteAccount(tx, call))
        return succeed(call, 200, {}, toSignedOut(call.cookies))
      },
      {
        account: 'account.delete',
        response: { 200: SuccessOf(NoData, 'The account is deleted, and its sessions are ended.') },
        detail: {
          operationId: 'deleteAccount',
          summary: 'Delete your account',
          description:
            'The only owner of an organization must first make another member an owner, or delete the organization.',
          tags,
        },
      },
    )
    .get(
      '/api/me/export',
      async ({ call }) => {
        const { pool, admitted, actor } = call
        const { id } = admitted.account
        await transact(pool, async tx => {
          await lockOwnAccount(tx, admitted)
          await writeAudit(tx, actor, { action: 'account.exported', target: toId('per', id) })
        })
        return succeedFile(call, {
          name: 'tidings-account.json',
          contentType: 'application/json; charset=utf-8',
          parts: exportAccount(pool, id),
        })
      },
      {
        account: 'account.export',
        response: { 200: FileOf(AccountExport, JSON_FILE) },
        detail: { operationId: 'exportAccount', summary: 'Export your own data', tags },
      },
    )
}

async function editAccount(
  call: CallOn<'account'>,
  change: Static<typeof AccountChange>,
): Promise<Account> {
  const { pool, admitted, actor } = call
  const { account } = admitted
  const name = change.name?.trim() ?? null
  const email = (change.email && parseEmail(change.email)) ?? null
  const edited = await transact(pool, async tx => {
    const before = await lockAccount(tx, account.id)
    const isNewAddress = email !== null && email !== before.email
    if (isNewAddress) {
      // Keeps a stolen session from taking over the account with another address.
      authorize(admitted, 'account.changeAddress', undefined)
      await lockOwnAccount(tx, admitted)
      await limitAddressChanges(tx, account.id)
      if (await findAccountByEmail(tx, email)) return refuseAddress(tx, call)
    }
    const [edited] = await tx<[{ name: string; email: string }]>`
      update accounts set
        name = coalesce(${name}, name),
        email = coalesce(${email}, email),
        is_email_proven = is_email_proven and not ${isNewAddress}
      where id = ${account.id}
      returning name, email
    `
    // The address is the identity at the proxy.
    if (isNewAddress) {
      await tx`
        delete from openid_connections where account_id = ${account.id} and issuer = ${PROXY.issuer}
      `
    }
    const former = { ...account, ...before }
    const fields = FIELDS.filter(field => edited[field] !== former[field]).join(' ')
    if (fields !== '') {
      await writeAudit(tx, actor, {
        action: 'account.edited',
        target: toId('per', account.id),
        details: { fields },
      })
    }
    return getAccount(tx, { ...admitted, account: { ...account, ...edited } })
  }).catch((error: unknown) => {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    // Another account took the address at the same moment.
    return transact(pool, tx => refuseAddress(tx, call))
  })
  if (edited) return edited
  throw new Fault('conflict', 'This e-mail address cannot be used. Choose another one.')
}

/** Counts a try of an address that another account has. */
async function refuseAddress(tx: Tx, { admitted, actor }: CallOn<'account'>): Promise<undefined> {
  const target = toId('per', admitted.account.id)
  await writeAudit(tx, actor, { action: 'account.addressRefused', target })
  return undefined
}
