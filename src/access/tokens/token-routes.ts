import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { succeedRead, type SessionGuard } from '../guard/guard.ts'
import { isAtLeast } from '../guard/permissions.ts'
import { DeletedId } from '../guard/schema.ts'
import { lockOrganization } from '../organizations/organizations.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { CurrentToken, ManagementToken, NewManagementToken, TokenBody } from './schema.ts'
import {
  checkPersonalRole,
  createToken,
  getCurrentToken,
  listTokens,
  withdrawToken,
} from './tokens.ts'

const tags = ['Tokens']
const CREATION =
  'The response contains the secret of the token. It is shown only once. The token expires after `expiresInDays`, by default 90.'

/** Routes of management tokens: of an account, of an organization, and of the request itself. */
export function tokenRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'tokens' })
    .use(guard)
    .get(
      '/api/token',
      ({ call }) => succeedRead(call, sql => getCurrentToken(sql, call.admitted)),
      {
        token: 'currentToken.read',
        response: { 200: SuccessOf(CurrentToken, 'The token, and what it reaches.') },
        detail: { operationId: 'getCurrentToken', summary: 'Get the token of the request', tags },
      },
    )
    .get(
      '/api/tokens',
      ({ call, query }) =>
        succeedRead(call, sql => listTokens(sql, { accountId: call.admitted.account.id }, query)),
      {
        account: 'tokens.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(ManagementToken), 'A page of your personal tokens.') },
        detail: { operationId: 'listTokens', summary: 'List your personal tokens', tags },
      },
    )
    .post(
      '/api/tokens',
      async ({ call, body }) => {
        const { admitted } = call
        const created = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, admitted)
          await checkPersonalRole(tx, admitted.account.id, body.role)
          return createToken(tx, call, null, body)
        })
        return succeed(call, 201, created)
      },
      {
        account: 'tokens.create',
        body: TokenBody,
        response: { 201: SuccessOf(NewManagementToken, 'The token with its secret.') },
        detail: {
          operationId: 'createToken',
          summary: 'Create a personal token',
          description: CREATION,
          tags,
        },
      },
    )
    .delete(
      '/api/tokens/:tokenId',
      async ({ call, params: { tokenId: id } }) => {
        const owner = { accountId: call.admitted.account.id }
        await transact(call.pool, tx => withdrawToken(tx, call.actor, { owner, id }))
        return succeed(call, 200, { id })
      },
      {
        account: 'tokens.withdraw',
        response: { 200: SuccessOf(DeletedId, 'The token is withdrawn.') },
        detail: { operationId: 'withdrawToken', summary: 'Withdraw a personal token', tags },
      },
    )
    .get(
      '/api/organizations/:organizationId/tokens',
      ({ call, query }) =>
        succeedRead(call, sql => listTokens(sql, { organizationId: call.organizationId }, query)),
      {
        organization: 'organizationTokens.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(ManagementToken), 'A page of its tokens.') },
        detail: {
          operationId: 'listOrganizationTokens',
          summary: 'List the tokens of an organization',
          tags,
        },
      },
    )
    .post(
      '/api/organizations/:organizationId/tokens',
      async ({ call, body }) => {
        const { organizationId, actor, admitted } = call
        const created = await transact(call.pool, async tx => {
          const ownRole = await lockOrganization(tx, call, 'organizationTokens.create')
          if (!isAtLeast(ownRole, body.role)) {
            throw new Fault(
              'forbidden',
              `A token cannot have the ${body.role} role. Your own role is ${ownRole}.`,
            )
          }
          // The guard has refused tokens.
          if (admitted.token) throw new Fault('forbidden', 'Tokens cannot do this')
          return createToken(tx, { actor, admitted }, organizationId, body)
        })
        return succeed(call, 201, created)
      },
      {
        organization: 'organizationTokens.create',
        body: TokenBody,
        response: { 201: SuccessOf(NewManagementToken, 'The token with its secret.') },
        detail: {
          operationId: 'createOrganizationToken',
          summary: 'Create a token of an organization',
          description: `${CREATION} It ends when you leave the organization.`,
          tags,
        },
      },
    )
    .delete(
      '/api/organizations/:organizationId/tokens/:tokenId',
      async ({ call, params: { tokenId: id } }) => {
        const { organizationId, actor } = call
        await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'organizationTokens.withdraw')
          await withdrawToken(tx, actor, { owner: { organizationId }, id })
        })
        return succeed(call, 200, { id })
      },
      {
        organization: 'organizationTokens.withdraw',
        response: { 200: SuccessOf(DeletedId, 'The token is withdrawn.') },
        detail: {
          operationId: 'withdrawOrganizationToken',
          summary: 'Withdraw a token of an organization',
          tags,
        },
      },
    )
}
