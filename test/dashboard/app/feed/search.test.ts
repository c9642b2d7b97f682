import { describe, expect, test } from 'bun:test'
import {
  applySuggestion,
  findFragment,
  isUnfinished,
  withTimes,
} from '../../../../src/dashboard/app/search/fragment.ts'
import { suggestHere } from '../../../../src/dashboard/app/search/suggest.ts'
import {
  EMPTY_SEARCH,
  parse,
  readSearch,
  toChannel,
  toEveryMs,
  toQuery,
  toSearchPath,
  toTermText,
  withoutPart,
} from '../../../../src/dashboard/app/feed/search.ts'

describe('dashboard.md §3 a search and its address', () => {
  test('convert to each other', () => {
    const path = toSearchPath('prj_1', {
      ...{ channelId: 'chn_1', text: 'a "b & c" -tag:d#e' },
      ...{ from: '24h', to: '2026-11-20T10:00:00Z' },
    })
    const { searchParams } = new URL(path, 'http://localhost')
    expect(readSearch(Object.fromEntries(searchParams))).toEqual({
      ...{ channelId: 'chn_1', text: 'a "b & c" -tag:d#e' },
      ...{ from: '24h', to: '2026-11-20T10:00:00Z' },
    })
    expect(toSearchPath('prj_1', EMPTY_SEARCH, 'evt_1')).toBe('/p/prj_1/e/evt_1')
  })

  test('omit invalid moments, and a typed channel goes before the chosen one', () => {
    expect(readSearch({ from: 'x', to: 'toString', q: ' channel:a ', channel: 'chn_1' })).toEqual({
      ...EMPTY_SEARCH,
      text: 'channel:a',
    })
    expect(readSearch({ from: 'constructor', channel: '' })).toEqual(EMPTY_SEARCH)
  })

  test.each([
    ['channel:a OR channel:b', ''],
    ['(channel:a OR channel:b) tag:x', 'tag:x'],
    ['channel:a tag:x', 'tag:x'],
    ['-(channel:a OR tag:b)', '-(channel:a OR tag:b)'],
  ])('lead from %p to another channel with %p', (from, text) => {
    const search = toChannel({ ...EMPTY_SEARCH, text: from }, 'chn_1')
    expect(search).toEqual({ ...EMPTY_SEARCH, channelId: 'chn_1', text })
    const { searchParams } = new URL(toSearchPath('prj_1', search), 'http://localhost')
    expect(readSearch(Object.fromEntries(searchParams))).toEqual(search)
  })

  test('have a range that ends now, and the narrower of two bounds applies', () => {
    const nowMs = Date.parse('2026-11-20T10:00:00Z')
    const search = { ...EMPTY_SEARCH, channelId: 'chn_1', text: 'after:2026-11-20', from: '24h' }
    expect(toQuery(search, nowMs)).toEqual({
      q: 'channel:chn_1 after:2026-11-20',
      from: '2026-11-19T10:00:00.000Z',
    })
    expect(parse(search, nowMs).filters.after).toBe(Date.parse('2026-11-20'))
    expect(toQuery({ ...EMPTY_SEARCH, text: 'after:2h x' }, nowMs)).toEqual({ q: 'after:2h x' })
  })

  test('a chosen channel holds for all alternatives, and invalid terms are left out', () => {
    const q = (text: string, channelId?: string) =>
      toQuery({ ...EMPTY_SEARCH, channelId, text }, 0).q
    expect(q('a OR tag:b', 'chn_1')).toBe('channel:chn_1 (a OR tag:b)')
    expect(q('a OR tag:b')).toBe('a OR tag:b')
    expect(q('before:x a', 'chn_1')).toBe('channel:chn_1 a')
    expect(q('before:x')).toBeUndefined()
  })

  test('a part is removed from the text as typed', () => {
    const remove = (text: string, n: number) => {
      const part = parse({ ...EMPTY_SEARCH, text }, 0).parts[n]
      return part && withoutPart(text, part)
    }
    expect(remove('a  after:2h "b c"', 1)).toBe('a "b c"')
    expect(remove('x (a OR b) -tag:c', 1)).toBe('x -tag:c')
  })

  test('a value that no search can express has no search', () => {
    for (const one of ['id=1152921506151679042', 'price=1.10'])
      expect(toTermText('meta', one)).toBe(`meta:${one}`)
    expect(toTermText('user', 'a "b" c')).toBe('user:"a \\"b\\" c"')
    expect(toTermText('user', 'ada')).toBe('user:"ada"')
    expect(toTermText('user', 'ada l')).toBe('user:"ada l"')
    expect(toTermText('user', '   ')).toBeUndefined()
    expect(toTermText('tag', 'x'.repeat(600))).toBeUndefined()
  })
})

describe('dashboard.md §3 the term that is being typed', () => {
  const find = (marked: string) => {
    const caret = marked.indexOf('|')
    const text = marked.replace('|', '')
    const found = findFragment(text, caret)
    return found && [text.slice(found.start, found.end), found.sign, found.key, found.value]
  }
  test.each<[string, string[] | undefined]>([
    ['|', ['', '', '', '']],
    ['ch|', ['ch', '', '', 'ch']],
    ['a tag:v|ip b', ['tag:vip', '', 'tag', 'v']],
    ['-TAG:|', ['-TAG:', '-', 'tag', '']],
    ['(user:ad|)', ['user:ad', '', 'user', 'ad']],
    ['-(a OR channel:"Sign u|', ['channel:"Sign u', '', 'channel', 'Sign u']],
    ['channel:"Sign u|ps" x', ['channel:"Sign ups"', '', 'channel', 'Sign u']],
    ['channel:"Sign ups"|', undefined],
    ['"a phra|se"', undefined],
    ['foo:b|', ['foo:b', '', '', 'foo:b']],
    ['-LEVEL>=h|', ['-LEVEL>=h', '-', 'level>=', 'h']],
    ['meta:plan=p|', ['meta:plan=p', '', 'meta', 'plan=p']],
  ])('in %p', (marked, expected) => {
    expect(find(marked)).toEqual(expected)
  })

  test.each([
    ['le', ['level:', 'level>=']],
    ['level>', ['level>=']],
    ['level:', ['level:low', 'level:normal', 'level:high', 'level:critical']],
    ['-Level>="H', ['level>=high']],
  ])('%p has the levels as suggestions', (text, terms) => {
    const fragment = findFragment(text, text.length)
    expect(fragment && suggestHere(fragment)?.map(({ term }) => term)).toEqual(terms)
  })

  const isUnfinishedAt = (marked: string) =>
    isUnfinished({ value: marked.replace('|', ''), selectionEnd: marked.indexOf('|') })

  test.each([...['after:|', 'tag:"|', 'meta:plan=|', 'level:hi|', '(a OR |', 'a after:2x| b']])(
    'makes %p unfinished',
    marked => {
      expect(isUnfinishedAt(marked)).toBe(true)
    },
  )

  test.each([...['pay|', 'after:2d|', 'after:2x |', 'level:x a|', 'tag:vip|', '(a OR b)|']])(
    'may end in %p',
    marked => {
      expect(isUnfinishedAt(marked)).toBe(false)
    },
  )

  test('is replaced by a suggestion, and the caret moves on', () => {
    const take = (marked: string, term: string, isWhole = true) => {
      const caret = marked.indexOf('|')
      const text = marked.replace('|', '')
      const fragment = findFragment(text, caret)
      const taken = fragment && applySuggestion(text, fragment, { term, isWhole })
      return taken && `${taken.text.slice(0, taken.caret)}|${taken.text.slice(taken.caret)}`
    }
    expect(take('a ch| b', 'channel:', false)).toBe('a channel:| b')
    expect(take('a -tag:v|', 'tag:vip')).toBe('a -tag:vip |')
    expect(take('tag:v| b', 'tag:vip')).toBe('tag:vip |b')
    expect(take('(tag:v|)', 'tag:vip')).toBe('(tag:vip|)')
    expect(take('channel:"Sign|', 'channel:"Sign ups"')).toBe('channel:"Sign ups" |')
  })
})

test('times replace those of a search', () => {
  expect(withTimes('after:7d new before:2026-01-02', 'after:today')).toBe('new after:today')
  expect(withTimes('a OR after:2d', 'after:today')).toBe('(a OR after:2d) after:today')
  expect(withTimes('-after:x', '')).toBe('')
})

test('a search is asked again after a part of its time if that ends now', () => {
  const nowMs = Date.parse('2026-11-20T10:00:00Z')
  const every = (search: object) => toEveryMs({ ...EMPTY_SEARCH, ...search }, nowMs)
  expect(every({ from: '1h' })).toBe(60_000)
  expect(every({ from: '30d' })).toBe(12 * 3_600_000)
  for (const text of ['after:2h', 'before:2h', 'new OR after:2h', '-after:2h'])
    expect(every({ text })).toBeGreaterThan(0)
  for (const text of ['', 'new', 'after:2026-11-19']) expect(every({ text })).toBeUndefined()
})
