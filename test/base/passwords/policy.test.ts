import { expect, test } from 'bun:test'
import { hashPassword, verifyPassword } from '../../../src/access/sign-in/credentials.ts'
import { parseEmail } from '../../../src/base/config/values.ts'
import { findPasswordProblem } from '../../../src/base/passwords/policy.ts'
import { measureProcessor } from '../../support/processor.ts'

const OWNER = { email: 'ada.lovelace@example.com', name: 'Ada Lovelace' }
const judge = (password: string) => findPasswordProblem(password, OWNER)?.code ?? 'fit'

test.each([
  'violet tractor seventeen',
  'gravel monkey jacket',
  'ada-purple-monsoon',
  'my dog eats 12 apples',
  'Kx93#Lq0P!zT',
  '9f8a7c6b5d4e3f2a',
  'пароль верблюд снег',
  'zwölf Boxkämpfer jagen',
  'パスワード変更は大切です!',
  '😀🚀🎸🍕🐙🌵🔑🎲🧊🪁🛶🥑',
  '   kw   q 3 j  z w',
])('reliability §6 %p is accepted: there are no rules of composition', password => {
  expect(judge(password)).toBe('fit')
})

test.each([
  [
    'well known',
    ['correct horse battery staple', 'Correct-Horse-Battery-Staple', 'thequickbrownfox'],
  ],
  [
    'a well-known word dressed up',
    ['Password123!', 'P4ssw0rd2026!!', 'pa$$w0rd!!!!!!', 'Monday-2026-11'],
  ],
  [
    'well-known words',
    ['passwordpassword', 'letmein-letmein', 'welcome2tidings!', 'test1234test', 'changeme123456'],
  ],
  ['one character', ['aaaaaaaaaaaa', '            ', 'abababababab', 'AAAAbbbbCCCC']],
  ['a repetition', ['xk4xk4xk4xk4', 'x9!kx9!kx9!kx9!k']],
  ['a sequence', ['123456789012', 'abcdefghijkl', 'zyxwvutsrqpo', '210987654321']],
  [
    'a run over the keyboard',
    ['qwertyuiop123', 'lkjhgfdsaqwe', '1q2w3e4r5t6y', '1qaz2wsx3edc', 'qwertzuiop12'],
  ],
  [
    'their own',
    [
      'ada.lovelace@example.com',
      'Ada Lovelace',
      'AdaLovelace1815',
      'lovelace_ada!',
      'example.com1234',
    ],
  ],
])('reliability §6 %s is refused', (_, passwords) => {
  expect(passwords.map(password => [password, judge(password)])).toEqual(
    passwords.map(password => [password, 'invalid_value']),
  )
})

test('reliability §6 a password has 12 to 128 characters as people count them', () => {
  const text = 'x7#Qm!9z'.repeat(20) // Repetitive, but the length is checked first.
  expect(judge(text.slice(0, 11))).toBe('too_short')
  expect(judge('é🚀x7#Qm!9z2')).toBe('too_short')
  expect(judge('é🚀x7#Qm!9z2k'.normalize('NFD'))).toBe('fit')
  expect(judge(`${text.slice(0, 120)}unlike it`)).toBe('too_long')
  expect(judge(`${text.slice(0, 119)}unlike it`)).toBe('fit')
  expect(judge('é'.normalize('NFD').repeat(128))).toBe('invalid_value')
  expect(judge('é'.repeat(129))).toBe('too_long')
})

test('reliability §6 checking a long, repetitive password costs little more than another', async () => {
  const units = ['a', 'ab', 'password', 'ada', '1!']
  const measure = (toText: (unit: string) => string) =>
    measureProcessor(() => {
      for (let nth = 0; nth < 20; nth++) for (const unit of units) judge(toText(unit))
    })
  const random = () => Buffer.from(crypto.getRandomValues(new Uint8Array(64))).toString('hex')
  const control = await measure(random)
  expect((await measure(unit => unit.repeat(128).slice(0, 128))) / control).toBeLessThan(50)
})

test('reliability §6 4 passwords are hashed at once, 32 wait, and further ones get a 503', async () => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, () => hashPassword('violet tractor seventeen', 'test')),
  )
  const failed = outcomes.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
  expect(failed.map(({ code }) => code)).toEqual(Array(4).fill('unavailable'))
  // A refused caller releases no slot of another.
  expect(await hashPassword('violet tractor seventeen', 'test')).toStartWith(
    '$argon2id$v=19$m=19456,t=2,p=1$',
  )
})

test('reliability §6 without a stored hash every password is wrong', async () => {
  const hash = await hashPassword('violet tractor seventeen', 'test')
  expect(await verifyPassword('violet tractor seventeen', hash)).toBe(true)
  expect(await verifyPassword('violet tractor eighteen', hash)).toBe(false)
  for (const none of [null, '', 'garbage']) {
    expect(await verifyPassword('violet tractor seventeen', none)).toBe(false)
  }
})

test.each([
  [' Ada@Example.COM ', 'ada@example.com'],
  ['a@b', 'a@b'],
  ['jörg@müller.example', undefined],
  [`${'x'.repeat(64)}@example.com`, `${'x'.repeat(64)}@example.com`],
  [`${'x'.repeat(65)}@example.com`, undefined],
  ['ada', undefined],
  ['@example.com', undefined],
  ['a@b@c', undefined],
  ['a@b\u202e', undefined],
  ['', undefined],
])('%p as an e-mail address is %p', (text, email) => {
  expect(parseEmail(text)).toBe(email)
})
