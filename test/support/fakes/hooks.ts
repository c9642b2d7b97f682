import { PROJECT, type FakeApi } from './api.ts'

/** Two hooks, with requests to the first one. */
export function fillHooks(api: FakeApi): void {
  const at = new Date(Date.now() - 120_000).toISOString()
  const hook = {
    ...{ id: 'hok_1', name: 'Web shop', preset: 'generic', channel: 'payments' },
    template: { title: 'Order {{order.id}} was paid', level: 'high' },
    ...{
      isOn: true,
      isVerified: false,
      requests: 42,
      refused: 3,
      createdAt: at,
      lastRequestAt: at,
    },
  }
  const off = { ...hook, id: 'hok_2', name: 'Old server', preset: 'alertmanager', isOn: false }
  const request = {
    ...{ id: 'hkr_1', at, status: 200, outcome: 'Became 1 event', eventIds: ['evt_1'] },
    headers: { 'content-type': 'application/json', authorization: '(redacted)' },
    body: '{"order":{"id":42}}',
  }
  const refused = {
    ...{ ...request, id: 'hkr_2', status: 401, eventIds: [] },
    outcome: 'The signature in webhook-signature does not match the secret.',
  }
  api.on('GET /api/projects/:id/hooks', () => ({ data: { items: [hook, off] } }))
  api.on('GET /api/projects/:id/hooks/:hook/requests', () => ({
    data: { items: [request, refused] },
  }))
  api.on('POST /api/projects/:id/hooks/:hook/preview', ({ template }) => ({
    data: { events: [{ channelName: 'payments', title: template?.title ?? 'Request' }] },
  }))
  api.on('PATCH /api/projects/:id/hooks/:hook', () => ({ data: off }))
  api.on('POST /api/projects/:id/hooks', body => ({
    status: 201,
    data: { ...hook, ...body, url: `http://localhost/in/${'a'.repeat(43)}` },
  }))
}

export const HOOKS = `/p/${PROJECT}/settings/hooks`
