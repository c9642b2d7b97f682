import { expect, test } from 'bun:test'
import { parseStateFile } from '../../../src/cli/apply/file.ts'
import { describeStep, toPlan } from '../../../src/cli/apply/plan.ts'
import type { State } from '../../../src/cli/apply/state.ts'

const channel = {
  icon: null,
  description: null,
  isArchived: false,
  keepDays: null,
  level: 'normal' as const,
  escalation: null,
}

const STATE: State = {
  organization: { id: 'org_1', name: 'Acme' },
  role: 'owner',
  organizationRefusal: undefined,
  projects: [
    {
      id: 'prj_1',
      name: 'Web shop',
      keepDays: 30,
      channels: [
        { ...channel, id: 'chn_1', slug: 'payments', name: 'payments' },
        { ...channel, id: 'chn_2', slug: 'refunds', name: 'refunds', icon: '❤️' },
      ],
      webhooks: [
        {
          id: 'whk_1',
          name: 'Ops',
          url: 'https://a.example/hooks/1',
          type: 'event.created',
          preset: 'standard',
          channels: ['chn_2', 'chn_1'],
          body: '{"text":"{{title}}"}',
          headers: ['Authorization'],
          viewId: null,
        },
      ],
      views: [{ id: 'viw_1', name: 'VIPs' }],
    },
  ],
  members: [{ id: 'per_1', email: 'ada@example.com', role: 'admin' }],
  invites: [{ email: 'grace@example.com', role: 'member' }],
}

/** Plans a file. Returns its lines, with the marks of the command. */
function plan(text: string, state: Partial<State> = {}): string[] {
  const { steps, refused } = toPlan(parseStateFile(text, 'tidings.yaml'), {
    ...STATE,
    ...state,
  })
  return [...steps.map(describeStep), ...refused.map(line => `! ${line}`)]
}

const shop = (rest: string) => `projects:\n  - name: Web shop\n    ${rest}\n`

test.each([
  ['an empty file', ''],
  ['equal fields', shop('keepDays: 30')],
  ['an emoji in its text form', shop('channels: [{name: refunds, icon: ❤}]')],
  ['an empty description', shop('channels: [{name: " PAYMENTS", description: ""}]')],
  [
    'the same filter in another order',
    shop(
      'webhooks: [{name: Ops, url: "https://a.example/hooks/1#x", channels: [payments, Refunds]}]',
    ),
  ],
  ['an open invite', 'members: [{email: Grace@example.com, role: member}]'],
  ['a member', 'members: [{email: ada@example.com, role: admin}]'],
])('%s needs no change', (_, text) => {
  expect(plan(text)).toEqual([])
})

test('each change says from what to what, without the path of a URL', () => {
  expect(
    plan(
      `${shop('keepDays: null')}    channels: [{name: payments, icon: 💰, description: Two words, level: high, escalation: {repeatMinutes: 10}}]
    webhooks: [{name: Ops, url: "https://b.example/hooks/secret", channels: null}]
  - name: New
    keepDays: 7
members: [{email: ada@example.com, role: viewer}, {email: new@example.com, role: member}]`,
    ),
  ).toEqual([
    'project Web shop: keepDays 30 -> none',
    'channel payments in Web shop: icon none -> 💰, description none -> "Two words", level normal -> high, escalation none -> {"repeatMinutes":10}',
    'webhook Ops in Web shop: url https://a.example/… -> https://b.example/…, channels payments + refunds -> all',
    'create project New',
    'project New: keepDays none -> 7',
    'member ada@example.com: role admin -> viewer',
    'invite member new@example.com: role member',
  ])
})

test('a missing channel is created before the webhooks that name it', () => {
  const webhook = (name: string) =>
    `webhooks: [{name: New, url: "https://c.example", channels: [payments, ${name}]}]`
  const channels = 'channels: [{name: " Later ", icon: 💰, isArchived: false, level: normal}]\n    '
  expect(plan(shop(channels + webhook('LATER')))).toEqual([
    'create channel Later in Web shop: icon none -> 💰',
    'create webhook New in Web shop: url https://c.example',
  ])
  expect(plan(shop(webhook('later')))).toEqual([
    expect.stringContaining('! webhook New in Web shop names channels that do not exist: later.'),
  ])
})

test('the own body, headers and view of a webhook: values come from the environment, and are not shown', () => {
  process.env['HOOK_TOKEN'] = 'Bearer s3cret'
  const same = 'name: Ops, url: "https://a.example/hooks/1", headers: {Authorization: HOOK_TOKEN}'
  const body = '{"text":"{{title}}"}'
  expect(plan(shop(`webhooks: [{${same}, body: '${body}', view: null}]`))).toEqual([])
  const text = shop(
    `webhooks: [{name: Ops, url: "https://b.example", headers: {Authorization: HOOK_TOKEN}, body: '{"key":"K3Y"}', view: VIPs}]`,
  )
  expect(plan(text)).toEqual([
    'webhook Ops in Web shop: url https://a.example/… -> https://b.example, another body, viewId none -> viw_1',
  ])
  const [step] = toPlan(parseStateFile(text, 'tidings.yaml'), STATE).steps
  expect(step?.request.body as object).toEqual({
    url: 'https://b.example/',
    body: '{"key":"K3Y"}',
    viewId: 'viw_1',
    headers: { Authorization: 'Bearer s3cret' },
  })
  delete process.env['HOOK_TOKEN']
  expect(plan(text)).toEqual([
    '! webhook Ops in Web shop needs environment variables that are not set: HOOK_TOKEN.',
  ])
  expect(plan(shop('webhooks: [{name: Ops, url: "https://a.example", view: Mine}]'))).toEqual([
    '! webhook Ops in Web shop names a view that is not shared: Mine. Share it first.',
  ])
})

test.each([
  ['member', shop('keepDays: 7'), 'It requires the admin role'],
  ['viewer', shop('channels: [{name: payments, icon: 💰}]'), 'It requires the member role'],
  ['member', shop('channels: [{name: payments, keepDays: 7}]'), 'It requires the admin role'],
  ['viewer', shop('channels: [{name: later}]'), 'It requires the member role'],
  ['member', shop('channels: [{name: later, keepDays: 7}]'), 'It requires the admin role'],
  ['admin', 'members: [{email: ada@example.com, role: owner}]', 'It requires the owner role'],
  ['admin', 'members: [{email: new@example.com, role: owner}]', 'above the role of the token'],
  ['owner', 'members: [{email: grace@example.com, role: admin}]', 'Withdraw it first'],
] as const)('a token with the role %s is refused %p', (role, text, reason) => {
  const lines = plan(text, { role })
  expect(lines).toEqual([expect.stringMatching(/^! /)])
  expect(lines[0]).toContain(reason)
})

test('a token that is limited to projects cannot change the organization', () => {
  const text = 'members: [{email: new@example.com, role: viewer}]\nprojects: [{name: New}]'
  expect(plan(text, { organizationRefusal: 'Limited.' })).toEqual([
    '! create project New. Limited.',
    '! member new@example.com. Limited.',
  ])
})

test('a channel is found by its first name, also after a rename', () => {
  const projects = STATE.projects.map(project => ({
    ...project,
    channels: project.channels.map(one =>
      one.slug === 'refunds' ? { ...one, name: 'Payments' } : { ...one, name: 'Money' },
    ),
  }))
  const text = shop(
    'channels: [{name: payments}, {name: refunds, icon: ❤}]\n    webhooks: [{name: Ops, url: "https://a.example/hooks/1", channels: [payments, refunds]}]',
  )
  expect(plan(text, { projects })).toEqual([])
})

test.each([
  [
    'organization: Acme\nrules: []',
    'tidings.yaml:2: rules: Unknown field. Known here: members, organization, projects.',
  ],
  [shop('colour: red'), 'tidings.yaml:3: projects[0].colour: Unknown field.'],
  [shop('keepDays: soon'), 'tidings.yaml:3: projects[0].keepDays: Expected integer'],
  [shop('webhooks:\n      - name: Ops'), 'tidings.yaml:4: projects[0].webhooks[0].url: Required'],
  [
    shop('webhooks: [{name: Ops, url: "https://a.example", channels: []}]'),
    'tidings.yaml:3: projects[0].webhooks[0].channels',
  ],
  ['projects:\n  - name: a\n  - name: a', 'tidings.yaml:3: projects[1]: "a" is there twice.'],
  [
    shop('channels: [{name: a}, {name: A}]'),
    'tidings.yaml:3: projects[0].channels[1]: "a" is there twice.',
  ],
  [
    'members:\n  - email: ada\n    role: admin',
    'tidings.yaml:2: members[0].email: Must be an e-mail',
  ],
  ['organization: a\norganization: b', 'tidings.yaml:2: Map keys must be unique'],
  ['organization: [', 'tidings.yaml:1: '],
  ['- a', 'tidings.yaml:1: Expected object, received array'],
])('%p is refused with its line', (text, message) => {
  expect(() => parseStateFile(text, 'tidings.yaml')).toThrow(message)
})

test('aliases that expand to too much are refused', () => {
  const levels = Array.from({ length: 9 }, (_, level) => {
    const item = level === 0 ? 'x' : `*l${level - 1}`
    return `l${level}: &l${level} [${Array(9).fill(item).join(', ')}]`
  })
  expect(() => parseStateFile(levels.join('\n'), 'tidings.yaml')).toThrow()
})

test('a filter is compared by channels, and not by names that two of them have', () => {
  const [project] = STATE.projects
  const renamed = project!.channels.map(one => ({ ...one, name: 'Money' }))
  const state = {
    projects: [
      {
        ...project!,
        channels: renamed,
        webhooks: [{ ...project!.webhooks[0]!, channels: ['chn_2'] }],
      },
    ],
  }
  const text = (name: string) =>
    shop(`webhooks: [{name: Ops, url: "https://a.example/hooks/1", channels: [${name}]}]`)
  expect(plan(text('refunds, Refunds'), state)).toEqual([])
  expect(plan(text('payments'), state)).toEqual([
    'webhook Ops in Web shop: channels refunds -> payments',
  ])
})
