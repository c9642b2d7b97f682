import { describe, expect, test } from 'bun:test'
import { searchEntries, toWords } from '../../../../src/dashboard/app/docs/search-entries.ts'

const entry = (title: string, text: string, page = 'Page') => ({
  url: `/docs/${title}`,
  page,
  title,
  text,
})
const ENTRIES = [
  entry('Limits', 'A key may make 100 requests. Rotate it when it leaks.'),
  entry('Rotate an API key', 'The old key works for a day.'),
  entry('Python', 'import urllib.request'),
]

describe('a search of the documentation', () => {
  const titles = (query: string) => searchEntries(ENTRIES, query, 10).map(({ title }) => title)

  test.each([
    ['python', ['Python']],
    ['rotate a key', ['Rotate an API key', 'Limits']],
    ['rot KEY', ['Rotate an API key', 'Limits']],
    ['urllib.request', ['Python']],
    ['otate', []],
    ['python key', []],
    ['', []],
    ['((', []],
  ])('%p finds %p', (query, expected) => {
    expect(titles(query)).toEqual(expected)
  })

  test('has an excerpt around the match', () => {
    const long = entry('Long', `${'before '.repeat(30)}needle ${'after '.repeat(60)}`)
    const [found] = searchEntries([long], 'needle', 1)
    expect(found?.excerpt).toMatch(/^… .*needle after .* …$/)
    expect(found?.excerpt.length).toBeLessThan(150)
  })

  test('ignores words that every section has, unless the query has no others', () => {
    expect(toWords('How to rotate a key')).toEqual(['rotate', 'key'])
    expect(toWords('the')).toEqual(['the'])
  })
})
