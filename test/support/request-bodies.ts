import type { Action } from '../../src/access/guard/permissions.ts'
import { createAuthenticator } from './clients/authenticator.ts'
import type { FullTenant } from './worlds/full-tenant.ts'
import { newSubscription } from './worlds/push.ts'

/** The password of every test account that has one. */
export const PASSWORD = 'correct horse battery staple'

/** A valid body for each action that takes one, with the tenant's names. */
export const BODIES: Partial<Record<Action, (tenant: FullTenant) => object>> = {
  'account.edit': () => ({ name: 'Ada' }),
  'account.verify': () => ({ password: PASSWORD }),
  'account.changePassword': () => ({
    currentPassword: PASSWORD,
    newPassword: 'another horse battery staple',
  }),
  'account.verifyByPasskey': () => ({
    credential: createAuthenticator('').get({ rpId: '', challenge: '' }),
  }),
  'secondFactor.confirm': () => ({ code: '000000' }),
  'account.addSecondFactor': () => ({ code: '000000' }),
  'passkeys.add': () => ({
    name: 'A passkey',
    credential: createAuthenticator('').create({ rp: { id: '' }, challenge: '' }),
  }),
  'passkeys.edit': () => ({ name: 'Renamed' }),
  'tokens.create': () => ({ name: 'Deploy', role: 'viewer' }),
  'organizationTokens.create': () => ({ name: 'Deploy', role: 'admin', expiresInDays: 30 }),
  'organizations.create': () => ({ name: 'Another' }),
  'organization.edit': () => ({ name: 'Renamed' }),
  'channels.create': () => ({ name: 'new channel' }),
  'members.changeRole': () => ({ role: 'admin' }),
  'signInRules.edit': () => ({ rules: [] }),
  'invites.create': () => ({ role: 'viewer' }),
  'projects.create': () => ({ name: 'Another' }),
  'project.edit': () => ({ name: 'Renamed', keepDays: 30 }),
  'keys.create': () => ({ name: 'Another' }),
  'keys.edit': () => ({ name: 'Renamed' }),
  'keys.rotate': () => ({ overlapHours: 1 }),
  'channels.edit': () => ({ name: 'Renamed', description: 'About payments' }),
  'events.acknowledge': () => ({ minutes: 60 }),
  'events.answer': () => ({ action: 'yes' }),
  'onDuty.edit': ({ params }) => ({
    memberId: params['accountId'],
    until: new Date(Date.now() + 3_600_000).toISOString(),
  }),
  'events.markRead': ({ params }) => ({ channelId: params['channelId'], seq: 1 }),
  'insights.edit': ({ params }) => ({
    kind: 'number',
    q: '',
    title: 'Everything',
    cardIds: [params['cardId']],
  }),
  'heartbeats.edit': ({ params }) => ({
    name: 'Backup',
    channel: params['channelId'],
    periodSeconds: 60,
    graceSeconds: 60,
  }),
  'hooks.create': () => ({ name: 'Shop', preset: 'generic', channel: 'ops' }),
  'hooks.edit': () => ({ name: 'Shop', isOn: false, template: null }),
  'rules.edit': ({ params }) => ({
    ...{ name: 'Payments', channel: params['channelId'], q: 'payment' },
    ...{ moreThan: 3, withinSeconds: 600 },
  }),
  'rules.preview': () => ({ q: 'payment', moreThan: null, withinSeconds: 3_600 }),
  'silences.edit': () => ({ minutes: 30, reason: 'Maintenance' }),
  'users.read': () => ({ userIds: ['ada'] }),
  'views.edit': () => ({ name: 'Saved', q: 'tag:vip' }),
  'views.setBell': () => ({ isOn: true }),
  'views.markSeen': () => ({ seq: 1 }),
  'users.editAliases': () => ({ alias: 'another-alias' }),
  'push.subscribe': () => newSubscription(),
  'push.edit': () => ({ label: 'My phone', isOn: false, quietHours: [] }),
  'push.test': () => ({}),
  'notifications.edit': () => ({ state: 'mute' }),
  'webhooks.preview': () => ({ url: 'https://93.184.216.34/hook' }),
  'webhooks.create': () => ({ url: 'https://93.184.216.34/hook' }),
  'webhooks.edit': () => ({ name: 'Renamed' }),
  'webhooks.rotate': () => ({ graceHours: 1 }),
  'webhooks.operate': () => ({ since: new Date(Date.now() - 3_600_000).toISOString() }),
}
