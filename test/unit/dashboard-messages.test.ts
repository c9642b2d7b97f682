import { expect, test } from 'bun:test'
import { LANGUAGES } from '../../src/dashboard/app/locales/languages.ts'
import { t, toRich } from '../../src/dashboard/app/locales/translate.tsx'
import { listDifferences, readCatalogue } from '../../src/dashboard/messages.ts'

test.each(Object.keys(LANGUAGES))('the catalogue of %s has every message', language => {
  expect(listDifferences(readCatalogue('en'), readCatalogue(language))).toEqual([])
})

test('a missing message and another placeholder are reported', () => {
  const english = {
    feed: { one: 'Hello {name}', two: '{count, plural, one {# <b>x</b>} other {#}}' },
  }
  expect(listDifferences(english, { feed: { two: '{n}', three: '' } })).toEqual([
    'feed.one is missing',
    'feed.two has n, not <b> count',
    'feed.three is not in English',
  ])
})

test('tests read the messages in English', () => {
  expect(t('app.reload')).toBe('Reload')
})

test('a value with markup is never an element of a message', () => {
  const rich = toRich({ key: 'app.reload', values: { name: '<b>Ada</b>' } })
  expect(rich).toEqual(['Reload'])
})
