import type { FakeApi } from './api.ts'

const AT = '2026-11-01T10:00:00.000Z'

/** A user of a fake server, whose changes are kept. */
export interface FakeUser {
  userId: string
  aliases: string[]
  properties?: object
}

/** Gives a fake server users with their aliases; returns the changes of them. */
export function fakeUsers(api: FakeApi, users: FakeUser[]): { changes: any[] } {
  const changes: any[] = []
  const missing = { status: 404, code: 'not_found', error: 'No user has this user_id or alias' }
  const find = (url: URL) => {
    const name = decodeURIComponent(url.pathname.split('/')[5] ?? '')
    return users.find(({ userId, aliases }) => userId === name || aliases.includes(name))
  }
  const note = (alias: string, change: string, other: string | null = null) =>
    changes.unshift({ at: AT, alias, change, other, person: { id: 'per_1', name: 'Ada Lovelace' } })

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
  api.on('POST /api/projects/:id/users/:user/aliases', ({ alias, from }, url) => {
    const user = find(url)
    const owner = users.find(({ aliases }) => aliases.includes(alias))
    if (!user) return missing
    if (owner && owner.userId !== from) {
      return { status: 409, code: 'conflict', error: 'Already an alias of another user' }
    }
    if (owner) owner.aliases = owner.aliases.filter(one => one !== alias)
    user.aliases.push(alias)
    note(alias, from === undefined ? 'added' : 'moved from', from ?? null)
    return { status: 201, data: { userId: user.userId, alias, since: AT } }
  })
  api.on('DELETE /api/projects/:id/users/:user/aliases/:alias', (_, url) => {
    const user = find(url)
    const alias = decodeURIComponent(url.pathname.split('/')[7] ?? '')
    if (!user) return missing
    user.aliases = user.aliases.filter(one => one !== alias)
    note(alias, 'removed')
    return { data: { userId: user.userId, alias } }
  })
  api.on('GET /api/projects/:id/users/:user/aliases/history', () => ({
    data: { items: changes, nextCursor: null },
  }))
  api.on('DELETE /api/projects/:id/users/:user', (_, url) => {
    const user = find(url)
    if (!user) return missing
    users.splice(users.indexOf(user), 1)
    return { data: { userId: user.userId, events: 1_234 } }
  })
  return { changes }
}
