import { Elysia } from 'elysia'
import { PROXY } from '../../base/config/openid.ts'
import { parseEmail } from '../../base/config/values.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Issue } from '../../http/rules.ts'
import { InvalidRequest } from '../../http/validation.ts'
import { toName } from '../guard/schema.ts'
import type { OpenidParts } from './provider-routes.ts'
import { listRules, replaceRules } from './rules.ts'
import { SignInRules, SignInRulesBody, type SignInRule } from './schema.ts'

const tags = ['Organizations']

/** Routes of the sign-in rules of an organization. */
export function ruleRoutes({ guard, providers, hasProxyHeader }: OpenidParts) {
  const named: SignInRules['providers'] = [
    ...providers.map(({ name, label }) => ({ name, label })),
    ...(hasProxyHeader ? [{ name: PROXY.name, label: PROXY.label }] : []),
  ]

  return new Elysia({ name: 'openid.rules' })
    .use(guard)
    .get(
      '/api/organizations/:organizationId/sign-in-rules',
      async ({ call }) => {
        const rules = await call.pool.run(sql => listRules(sql, call.organizationId))
        return succeed(call, 200, { rules, providers: named })
      },
      {
        organization: 'signInRules.read',
        response: { 200: SuccessOf(SignInRules, 'The rules.') },
        detail: { operationId: 'listSignInRules', summary: 'List the sign-in rules', tags },
      },
    )
    .put(
      '/api/organizations/:organizationId/sign-in-rules',
      async ({ call, body }) => {
        const given = toRules(body.rules, new Set(named.map(({ name }) => name)))
        const rules = await transact(call.pool, tx => replaceRules(tx, call, given))
        return succeed(call, 200, { rules, providers: named })
      },
      {
        organization: 'signInRules.edit',
        body: SignInRulesBody,
        response: { 200: SuccessOf(SignInRules, 'The new rules.') },
        detail: {
          operationId: 'replaceSignInRules',
          summary: 'Replace the sign-in rules',
          description:
            'A rule gives a role to the members of a group at a provider, or to the verified addresses of a domain, when they sign in. A membership that rules gave ends at a sign-in without a rule.',
          tags,
        },
      },
    )
}

/** Returns the stored form of rules. Throws `InvalidRequest` with all issues. */
function toRules(rules: readonly SignInRule[], providers: ReadonlySet<string>): SignInRule[] {
  const issues: Issue[] = []
  const normalized = rules.map((rule, index) => {
    const report = (field: keyof SignInRule, message: string) =>
      issues.push({ path: ['rules', String(index), field], code: 'invalid_value', message })
    if (!providers.has(rule.provider)) report('provider', 'No provider has this name')
    if (rule.kind === 'group') {
      if (rule.provider === PROXY.name) report('kind', 'The proxy header has no groups')
      return { ...rule, value: toName(rule.value) }
    }
    const value = parseEmail(`a@${rule.value.trim().replace(/^@/, '')}`)?.slice(2)
    if (value === undefined) report('value', 'Must be a domain, such as example.com')
    return { ...rule, value: value ?? '' }
  })
  if (issues.length > 0) throw new InvalidRequest(issues)
  return normalized
}
