import { expect, test } from 'bun:test'
import { isCoveredByIndex, type ResolvedFilters } from '../../../src/log/events/resolved-filters.ts'
import { noFilters, VALUE_LISTS } from '../../../src/log/events/search-filters.ts'

const { sources, levels, states, threads, tags, metadata, has } = noFilters()
const NO_USERS = { references: [], beginnings: [], names: [] }
const OF_CHANNEL: ResolvedFilters = {
  ...{ channelIds: ['a'], withoutChannelIds: [], users: undefined, withoutUsers: NO_USERS },
  ...{ sources, levels, states, threads, tags, metadata, has, texts: [], withoutTexts: [] },
  ...{ afterMs: null, beforeMs: null, groups: [], ranges: [] },
}

test('an index covers a channel or a user, and no other filter beside it', () => {
  expect(isCoveredByIndex(OF_CHANNEL)).toBe(true)
  const users = { ...NO_USERS, references: ['ada'] }
  expect(isCoveredByIndex({ ...OF_CHANNEL, channelIds: undefined, users })).toBe(true)
  expect(isCoveredByIndex({ ...OF_CHANNEL, users })).toBe(false)
  const lists = VALUE_LISTS.filter(name => name in OF_CHANNEL && name !== 'users')
  expect(lists).toContain('levels')
  for (const name of lists)
    for (const sign of ['is', 'not']) {
      const filters = { ...OF_CHANNEL, [name]: { is: [], not: [], [sign]: ['x'] } }
      expect([name, sign, isCoveredByIndex(filters)]).toEqual([name, sign, false])
    }
  for (const bound of ['afterMs', 'beforeMs'])
    expect(isCoveredByIndex({ ...OF_CHANNEL, [bound]: 1 })).toBe(false)
})
