import { expect, test } from 'bun:test'
import { isSearch, noFilters, VALUE_LISTS } from '../../../src/log/events/search-filters.ts'

test('a list is a search with each filter but channels, whole users and times', () => {
  expect(isSearch({ ...noFilters(), after: 1, before: 2 })).toBe(false)
  for (const name of VALUE_LISTS)
    for (const sign of ['is', 'not']) {
      const filters = { ...noFilters(), [name]: { is: [], not: [], [sign]: ['"x"'] } }
      const hasIndex = sign === 'is' && (name === 'channels' || name === 'users')
      expect([name, sign, isSearch(filters)]).toEqual([name, sign, !hasIndex])
    }
  expect(isSearch({ ...noFilters(), users: { is: ['x'], not: [] } })).toBe(true)
  const group = { isExcluded: false, filters: [noFilters(), noFilters()] }
  expect(isSearch({ ...noFilters(), groups: [group] })).toBe(true)
})
