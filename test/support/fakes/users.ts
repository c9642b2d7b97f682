import type { FakeApi } from './api.ts'

const AT = '2026-11-01T10:00:00.000Z'

/** A user of a fake server. */
export interface FakeUser {
  userId: string
  aliases: string[]
  properties?: object
}

/** Gives a fake server users with their aliases. */
export function fakeUsers(api: FakeApi, users: FakeUser[]): void {
  const missing = { status: 404, code: 'not_found', error: 'No user has this user_id or alias' }
  const find = (url: URL) => {
    const name = decodeURIComponent(url.pathname.split('/')[5] ?? '')
    return users.find(({ userId, aliases }) => userId === name || aliases.includes(name))
  }

  api.on('GET /api/projects/:id/users', (_, url) => {
    const search = url.searchParams.get('search') ?? ''
    const items = users
      .filter(({ userId, aliases }) => [userId, ...aliases].some(name => name.startsWith(search)))
      .map(({ userId, aliases, properties = {} }) => ({
        ...{ id: `idn_${userId}`, userId, aliases, properties, createdAt: AT, updatedAt: AT },
      }))
    return { data: { items, nextCursor: null } }
  })
  api.on('GET /api/projects/:id/users/:user', (_, url) => {
    const user = find(url)
    if (!user) return missing
    return {
      data: {
        id: `idn_${user.userId}`,
        userId: user.userId,
        properties: user.properties ?? {},
        aliases: user.aliases.map(alias => ({ alias, since: AT })),
        ...{ createdAt: AT, updatedAt: AT, events: 1_234, firstSeenAt: AT, lastSeenAt: AT },
        channels: [{ id: 'chn_payments', name: 'payments', icon: '💰', events: 1_200 }],
      },
    }
  })
  api.on('GET /api/projects/:id/users/:user/aliases/history', () => ({
    data: { items: [], nextCursor: null },
  }))
}
