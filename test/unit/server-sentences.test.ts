import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { i18n } from '@lingui/core'
import { ROLES } from '../../src/accounts/permissions.ts'
import { LANGUAGES } from '../../src/dashboard/app/locales/languages.ts'
import { toOwnLanguage } from '../../src/dashboard/app/locales/sentences.ts'
import { compileMessages, listDifferences, readSentences } from '../../src/dashboard/messages.ts'
import { listSentencesOf, listServerSentences } from '../support/server-sentences.ts'

const TRANSLATED = Object.keys(LANGUAGES).filter(language => language !== 'en')
/** Words that sentences have as the value of a variable. */
const WORDS = [...ROLES, 'code', 'password']
/** Places that pass on a sentence of another place, or write to the log. */
const PASSED_ON = [
  'egress/egress.ts message',
  'http/failures.ts message',
  'http/validation.ts message',
  'outbox/dispatcher.ts toReason',
  'outbox/settler.ts reason',
  'outbox/worker.ts toReason',
  'push/kind.ts withheld',
  'push/outcome.ts message',
  'push/outcome.ts reason',
  'webhooks/editing.ts problem',
  'webhooks/outcome.ts message',
  'webhooks/outcome.ts reason',
]

const found = listServerSentences()

test('every sentence of the server can be listed', () => {
  expect(found.unknown).toEqual(PASSED_ON)
})

describe.each(TRANSLATED)('in %s', language => {
  const sentences = readSentences(language)

  test('every sentence of the server that pages show is translated', () => {
    const expected = [...found.sentences, ...WORDS].sort()
    expect(Object.keys(sentences).sort()).toEqual(expected)
  })

  test('a translation has the variables of its sentence', () => {
    const english = Object.fromEntries(Object.keys(sentences).map(one => [one, one]))
    expect(listDifferences({ english }, { english: sentences })).toEqual([])
  })
})

describe('a sentence of the server', () => {
  beforeAll(() => {
    const file = compileMessages().get('de-serverTexts.json')
    i18n.loadAndActivate({ locale: 'de', messages: JSON.parse(String(file)) })
  })

  // Later files of the same process read English.
  afterAll(() => i18n.activate('en'))

  test.each([
    ['Sign in first', 'Melden Sie sich zuerst an'],
    ['Must be one of a, b (c)', 'Muss eines von a, b (c) sein'],
    [
      'Requires the admin role. Your role is viewer.',
      'Erfordert die Rolle Admin. Ihre Rolle ist Betrachter.',
    ],
    [
      'The push service answered 410: the subscription is gone',
      'Der Push-Dienst antwortete mit 410: Das Abonnement gibt es nicht mehr',
    ],
    [
      'The push service could not be reached. There was no response in time',
      'Der Push-Dienst war nicht erreichbar. Es kam nicht rechtzeitig eine Antwort',
    ],
    [
      'A user can have at most 1,000 aliases. Remove one first.',
      'Ein Nutzer kann höchstens 1,000 Aliasse haben. Entfernen Sie zuerst einen.',
    ],
    ['Something else <b>', 'Something else <b>'],
  ])('%p is %p', (english, german) => {
    expect(toOwnLanguage(english)).toBe(german)
  })
})

test.each([
  ["throw new Fault('conflict', 'Try again.')", ['Try again.']],
  [
    'new Fault("conflict", `At most ${MAX} of ${count.max.toLocaleString("en")}`)',
    ['At most {MAX} of {max}'],
  ],
  ["issue('too_long', isLong ? 'Long' : 'Short')", ['Long', 'Short']],
  ["const TEXT = 'Full'; new Fault('conflict', TEXT)", ['Full']],
  [
    "function toText() { return 'Late' }; new Fault('conflict', `${toText()}. Retry.`)",
    ['Late. Retry.'],
  ],
  [
    "function fail(text) { throw new Fault('conflict', text) }; fail('One'); fail('Two')",
    ['One', 'Two'],
  ],
  ["const x = { path: [], code: 'required', message: 'Required' }", ['Required']],
])('the sentences of %p are found', (source, sentences) => {
  expect(listSentencesOf(source)).toEqual({ sentences, unknown: [] })
})

test('a sentence that cannot be read is reported', () => {
  expect(listSentencesOf("new Fault('conflict', other(1))").unknown).toEqual(['file.ts other'])
})
