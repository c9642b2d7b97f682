import type { FakeApi } from './api.ts'

const AT = '2026-11-01T10:00:00.000Z'
const TODAY = [0, 0, 0, 2, 0, 1, 0, 0, 3, 5, 8, 4, 6, 9, 12, 7, 3, 2, 4, 6, 1, 0, 2, 1]

/** A channel of a fake server, with the member's notification settings for it. */
interface FakeChannel {
  id: string
  slug: string
  name: string
  icon: string | null
  description: string | null
  isArchived: boolean
  keepDays: number | null
  today: number[]
  unread: number
  setting: {
    state: 'on' | 'mute' | 'default'
    muteUntil?: string | null
    collapse?: boolean | null
  }
}

/** Gives a fake server the channels of its log, and others; changes are kept. */
export function fakeChannels(
  api: FakeApi,
  log: readonly { channelId: string; channelName: string; icon: string | null }[],
): void {
  const changes = new Map<string, Partial<FakeChannel>>()
  let all = { state: 'on' as 'on' | 'mute', muteUntil: null as string | null, collapse: true }
  const list = (): FakeChannel[] => {
    const found = log.map(
      ({ channelId, channelName, icon }) =>
        [channelId, toChannel(channelId, channelName, icon)] as const,
    )
    return [...new Map(found).values()].map(one => ({ ...one, ...changes.get(one.id) }))
  }
  const toAnswer = ({ setting, ...channel }: FakeChannel) => ({
    ...channel,
    createdAt: AT,
    lastSeq: 1,
    lastEventAt: AT,
    isMuted: (setting.state === 'default' ? all : setting).state === 'mute',
  })
  const toSetting = ({ id, setting }: FakeChannel) => ({
    channelId: id,
    isDefault: setting.state === 'default',
    isCollapseDefault: (setting.collapse ?? null) === null,
    ...(setting.state === 'default' ? all : { muteUntil: null, ...setting }),
    collapse: setting.collapse ?? all.collapse,
  })
  const change = (url: URL, edit: Partial<FakeChannel>) => {
    const id = decodeURIComponent(url.pathname.split('/')[5] ?? '')
    changes.set(id, { ...changes.get(id), ...edit })
    return list().find(one => one.id === id)
  }
  const answer = (channel: FakeChannel | undefined, to: (channel: FakeChannel) => unknown) =>
    channel
      ? { data: to(channel) }
      : { status: 404, code: 'not_found', error: 'No channel of this project has this id' }

  api.on('GET /api/projects/:id/channels', (_, { searchParams }) => {
    const search = searchParams.get('search') ?? ''
    const found = list().filter(
      ({ name, isArchived }) =>
        name.includes(search) && (!isArchived || searchParams.get('archived') === 'true'),
    )
    const from = Number(searchParams.get('cursor') ?? 0)
    const to = from + Number(searchParams.get('limit') ?? 50)
    return {
      data: {
        items: found.slice(from, to).map(toAnswer),
        nextCursor: found.length > to ? String(to) : null,
        total: found.length,
        alarms: 0,
      },
    }
  })
  const one = 'api/projects/:id/channels/:channel'
  api.on(`GET /${one}`, (_, url) => answer(change(url, {}), toAnswer))
  api.on(`PATCH /${one}`, (edit, url) => answer(change(url, edit), toAnswer))
  api.on(`GET /${one}/notifications`, (_, url) => answer(change(url, {}), toSetting))
  api.on(`PUT /${one}/notifications`, (setting, url) => {
    const { collapse } = change(url, {})?.setting ?? {}
    return answer(change(url, { setting: { collapse, ...setting } }), toSetting)
  })
  api.on('GET /api/projects/:id/notifications', () => ({
    data: { default: all, items: [], nextCursor: null },
  }))
  api.on('PUT /api/projects/:id/notifications', wish => ({
    data: (all = { muteUntil: null, collapse: all.collapse, ...wish }),
  }))
}

function toChannel(id: string, name: string, icon: string | null): FakeChannel {
  return {
    ...{
      id,
      slug: name.toLowerCase(),
      name,
      icon,
      description: null,
      isArchived: false,
      keepDays: null,
      level: 'normal',
      escalation: null,
    },
    ...{ today: TODAY, unread: 0, setting: { state: 'default' } },
  }
}
