import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { previewRule } from './preview.ts'
import { deleteRule, listRules, saveRule } from './rules.ts'
import { NewRule, Rule, RulePreview, RulePreviewInput, Rules } from './schema.ts'

const tags = ['Rules']
const path = '/api/projects/:projectId/rules'

export interface RuleParts {
  guard: SessionGuard
  /** For previews, which examine many rows. */
  searches: Pool
  /** Called after an edit, which may have appended an event. */
  onAppended(projectIds: ReadonlySet<string>): void
}

/** Routes of the rules of a project. */
export function projectRuleRoutes({ guard, searches, onAppended }: RuleParts) {
  return new Elysia({ name: 'rules' })
    .use(guard)
    .get(path, ({ call }) => succeedRead(call, sql => listRules(sql, call.projectId)), {
      project: 'rules.read',
      response: { 200: SuccessOf(Rules) },
      detail: { operationId: 'listRules', summary: 'List rules', tags },
    })
    .post(
      path,
      async ({ call, body }) =>
        succeed(call, 201, await transact(call.pool, tx => saveRule(tx, call, body))),
      {
        project: 'rules.edit',
        body: NewRule,
        response: { 201: SuccessOf(Rule) },
        detail: { operationId: 'createRule', summary: 'Create a rule', tags },
      },
    )
    .post(
      `${path}/preview`,
      async ({ call, body }) =>
        succeed(
          call,
          200,
          await searches.of(call.organizationId).run(sql => previewRule(sql, call.projectId, body)),
        ),
      {
        project: 'rules.preview',
        body: RulePreviewInput,
        response: { 200: SuccessOf(RulePreview) },
        detail: {
          operationId: 'previewRule',
          summary: 'Find out when a rule would have fired',
          tags,
        },
      },
    )
    .put(
      `${path}/:ruleId`,
      async ({ call, params: { ruleId: id }, body }) => {
        const rule = await transact(call.pool, tx => saveRule(tx, call, body, id))
        onAppended(new Set([call.projectId]))
        return succeed(call, 200, rule)
      },
      {
        project: 'rules.edit',
        body: NewRule,
        response: { 200: SuccessOf(Rule, 'The rule. It counts from now on.') },
        detail: { operationId: 'editRule', summary: 'Change a rule', tags },
      },
    )
    .delete(
      `${path}/:ruleId`,
      async ({ call, params: { ruleId: id } }) => {
        await transact(call.pool, tx => deleteRule(tx, call, id))
        onAppended(new Set([call.projectId]))
        return succeed(call, 200, { id })
      },
      {
        project: 'rules.edit',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'deleteRule', summary: 'Delete a rule', tags },
      },
    )
}
