import { isOpen } from '../../../src/log/events/state.ts'
import { ACCOUNT, PROJECT, type FakeApi } from './api.ts'
import { listOpenThreads } from './threads.ts'

/** Gives a fake server acknowledgements, silences and a member on duty. Changes are kept. */
export function fakeAlarms(api: FakeApi, log: readonly any[]): void {
  const { id, name } = ACCOUNT.person
  const acknowledged = new Map<number, { by: string; at: string; until: string | null }>()
  let silences: any[] = []
  let duty: object = { member: null, until: null }
  const find = ({ pathname }: URL) => log.find(one => pathname.includes(`/${one.id}/`))
  const toSeq = ({ threadSeq, seq }: any) => threadSeq ?? seq
  const event = '/api/projects/:id/events/:event/acknowledgement'
  api.on(`GET ${event}`, (_, url) => {
    const found = find(url)
    if (!found) return { status: 404, code: 'not_found', error: 'No event has this id' }
    const last = log.findLast(one => toSeq(one) === toSeq(found))
    const isAlarm = last.threadSeq ? isOpen(last.state) : last.level === 'critical'
    const acknowledgement = acknowledged.get(toSeq(found)) ?? null
    return { data: { acknowledgement, isOpen: isAlarm } }
  })
  api.on(`POST ${event}`, (_, url) => {
    const seq = toSeq(find(url))
    const own = { by: name, at: new Date().toISOString(), until: null }
    const first = acknowledged.get(seq) ?? own
    acknowledged.set(seq, first)
    api.send({ type: 'acknowledged', project: PROJECT, seq })
    return { data: first }
  })
  api.on('GET /api/projects/:id/threads', (_, url) => {
    const page = listOpenThreads(log, url)
    const items = page.items.map(one => {
      const first = acknowledged.get(one.threadSeq)
      return first ? { ...one, acknowledged: { by: first.by, at: first.at } } : one
    })
    return { data: { ...page, items } }
  })

  const route = '/api/projects/:id/silences'
  api.on(`GET ${route}`, () => ({ data: { items: silences } }))
  api.on(`POST ${route}`, ({ channel, thread, minutes, untilResolved = false, hours, reason }) => {
    const now = Date.now()
    const made = {
      ...{ id: `sil_${silences.length + 1}`, channelId: channel ?? null, thread: thread ?? null },
      channelName: log.find(({ channelId }) => channelId === channel)?.channelName ?? null,
      ...{ reason, by: name, createdAt: new Date(now).toISOString() },
      startsAt: new Date(hours ? now + 7_200_000 : now).toISOString(),
      endsAt: untilResolved ? null : new Date(now + (minutes ?? 600) * 60_000).toISOString(),
      ...{ untilResolved, hours: hours ?? null, isActive: !hours },
    }
    silences = [...silences, made]
    return { status: 201, data: made }
  })
  api.on(`DELETE ${route}/:silence`, (_, { pathname }) => {
    silences = silences.filter(one => !pathname.endsWith(`/${one.id}`))
    return { data: {} }
  })

  const beats = '/api/projects/:id/heartbeats'
  let heartbeats: any[] = []
  const findBeat = ({ pathname }: URL) => heartbeats.find(one => pathname.includes(`/${one.id}`))
  api.on(`GET ${beats}`, () => ({ data: { items: heartbeats } }))
  api.on(`POST ${beats}`, ({ channel, ...fields }) => {
    const id = `hbt_${heartbeats.length + 1}`
    const times = { lastPingAt: null, startedAt: null, dueAt: null }
    const made = {
      ...{ id, channelId: channel, channelName: channel.replace('chn_', ''), status: 'new' },
      ...{ url: `https://tidings.example.com/ping/${id}`, createdAt: new Date().toISOString() },
      ...{ ...times, ...fields },
    }
    heartbeats = [...heartbeats, made]
    return { status: 201, data: made }
  })
  api.on(`PATCH ${beats}/:heartbeat`, ({ isPaused }, url) => {
    const found = findBeat(url)
    if (isPaused !== undefined) found.status = isPaused ? 'paused' : 'new'
    return { data: found }
  })
  api.on(`GET ${beats}/:heartbeat/pings`, (_, url) => {
    const at = findBeat(url).lastPingAt
    const from = { runId: null, method: 'POST', userAgent: 'curl/8.14.1' }
    const failed = { kind: 'fail', exitCode: 2, tookMs: 754_000, body: 'no space left on device' }
    const started = { kind: 'start', exitCode: null, tookMs: null, body: '' }
    const pings = [failed, started].map((ping, n) => ({ number: 2 - n, at, ...from, ...ping }))
    return { data: { items: at ? pings : [] } }
  })

  const rules = '/api/projects/:id/rules'
  let saved: any[] = []
  api.on(`GET ${rules}`, () => ({ data: { items: saved } }))
  api.on(`POST ${rules}`, ({ channel, ...rule }) => {
    const channelName = log.find(({ channelId }) => channelId === channel)?.channelName ?? channel
    const made = {
      ...{ isOn: true, level: 'high', ...rule, id: `rul_${saved.length + 1}`, channelName },
      ...{ channelId: channel, createdAt: new Date().toISOString() },
      firingSince: rule.moreThan === null ? new Date(Date.now() - 600_000).toISOString() : null,
    }
    saved = [...saved, made]
    return { status: 201, data: made }
  })
  api.on(`POST ${rules}/preview`, ({ cursor }) => {
    const from = '2026-11-28T09:30:00.000Z'
    const firings = cursor ? [] : [{ from, to: '2026-11-28T09:45:00.000Z' }]
    const nextCursor = cursor ? null : 'next'
    return { data: { count: cursor ? 1 : 3, firings, since: from, until: from, nextCursor } }
  })

  api.on('GET /api/projects/:id/on-duty', () => ({ data: duty }))
  api.on('PUT /api/projects/:id/on-duty', ({ memberId, until }) => {
    duty = { member: { id: memberId, name: memberId === id ? name : 'Grace Hopper' }, until }
    return { data: duty }
  })
  api.on('DELETE /api/projects/:id/on-duty', () => {
    duty = { member: null, until: null }
    return { data: duty }
  })
}
