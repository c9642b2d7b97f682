import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { addCard, deleteCard, editCard, getBoard, getCard, reorderCards } from './cards.ts'
import { readResult } from './result.ts'
import { Board, Card, CardEdit, CardOrder, CardResult, NewCard } from './schema.ts'

const tags = ['Insights']

/**
 * Routes of the insights: a project's board of cards, and what each card shows. `searches` is for
 * results, which examine many rows.
 */
export function insightRoutes({ guard, searches }: { guard: SessionGuard; searches: Pool }) {
  return new Elysia({ name: 'insights' })
    .use(guard)
    .get(
      '/api/projects/:projectId/insights',
      ({ call }) => succeedRead(call, sql => getBoard(sql, call.projectId)),
      {
        project: 'insights.read',
        response: { 200: SuccessOf(Board) },
        detail: { operationId: 'getInsights', summary: 'Get the insights', tags },
      },
    )
    .post(
      '/api/projects/:projectId/insights',
      async ({ call, body }) =>
        succeed(call, 201, await transact(call.pool, tx => addCard(tx, call, body))),
      {
        project: 'insights.edit',
        body: NewCard,
        response: { 201: SuccessOf(Card, 'The card, at the end of the board.') },
        detail: { operationId: 'createCard', summary: 'Add a card to the insights', tags },
      },
    )
    .put(
      '/api/projects/:projectId/insights/order',
      async ({ call, body: { cardIds } }) =>
        succeed(call, 200, await transact(call.pool, tx => reorderCards(tx, call, cardIds))),
      {
        project: 'insights.edit',
        body: CardOrder,
        response: { 200: SuccessOf(Board, 'The board in its new order.') },
        detail: { operationId: 'orderCards', summary: 'Reorder the insights', tags },
      },
    )
    .patch(
      '/api/projects/:projectId/insights/:cardId',
      async ({ call, params: { cardId: id }, body: edit }) =>
        succeed(call, 200, await transact(call.pool, tx => editCard(tx, call, { id, edit }))),
      {
        project: 'insights.edit',
        body: CardEdit,
        response: { 200: SuccessOf(Card) },
        detail: { operationId: 'editCard', summary: 'Change a card', tags },
      },
    )
    .delete(
      '/api/projects/:projectId/insights/:cardId',
      async ({ call, params: { cardId: id } }) => {
        await transact(call.pool, tx => deleteCard(tx, call, id))
        return succeed(call, 200, { id })
      },
      {
        project: 'insights.edit',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'deleteCard', summary: 'Delete a card', tags },
      },
    )
    .get(
      '/api/projects/:projectId/insights/:cardId/result',
      async ({ call, params: { cardId } }) => {
        const { projectId, organizationId } = call
        const card = await call.pool.run(sql => getCard(sql, projectId, cardId))
        const result = await searches
          .of(organizationId)
          .run(sql => readResult(sql, projectId, card, { nowMs: Date.now() }))
        return succeed(call, 200, result)
      },
      {
        project: 'insights.read',
        response: { 200: SuccessOf(CardResult) },
        detail: { operationId: 'getCardResult', summary: 'Count what a card shows', tags },
      },
    )
}
