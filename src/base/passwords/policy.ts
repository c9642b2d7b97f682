import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from './length.ts'

/** A password is a pattern if fewer characters than this are unpredictable from the one before. */
const MIN_UNPREDICTABLE = 5
/** The minimum number of characters besides the owner's name and address. */
const MIN_NOT_OWN = 6

// Rows and zigzags of common keyboards. Neighbouring characters make a predictable step.
const KEYBOARD_RUNS = [
  '1234567890',
  'qwertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'qwertzuiop',
  'yxcvbnm',
  'azertyuiop',
  'qsdfghjklm',
  'wxcvbn',
  '1q2w3e4r5t6y7u8i9o0p',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm',
  'q1w2e3r4t5y6u7i8o9p0',
]
const STEPS = new Set(
  KEYBOARD_RUNS.flatMap(run =>
    [run, [...run].reverse().join('')].flatMap(text =>
      Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)),
    ),
  ),
)
const LEET: Record<string, string> = {
  0: 'o',
  1: 'i',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}

/** The owner of a password. It must not consist of their name or address. */
export interface PasswordOwner {
  email: string
  name: string
}

/** A problem with a password, as a validation issue. */
interface PasswordProblem {
  code: 'too_short' | 'too_long' | 'invalid_value'
  message: string
}

/** Returns the form that is hashed (NFC), because keyboards compose accents differently. */
export function normalizePassword(text: string): string {
  return text.normalize('NFC')
}

/**
 * Returns the problem with a password, if it has one: its length in code points, a well-known
 * password, a pattern, or the owner's name or address. There are no rules about kinds of
 * characters.
 */
export function findPasswordProblem(
  password: string,
  owner: PasswordOwner,
): PasswordProblem | undefined {
  const text = normalizePassword(password)
  const length = [...text].length
  if (length < MIN_PASSWORD_LENGTH) {
    return {
      code: 'too_short',
      message: `Must have at least ${MIN_PASSWORD_LENGTH} characters`,
    }
  }
  if (length > MAX_PASSWORD_LENGTH) {
    return { code: 'too_long', message: `Must have at most ${MAX_PASSWORD_LENGTH} characters` }
  }
  if (isOwn(text, owner)) return reject('Must not consist of your name or e-mail address')
  if (isCommon(text)) return reject('Must not be a commonly used password')
  if (isPattern(text)) return reject('Must not be a pattern such as 123456, qwerty or a repetition')
  return undefined
}

function reject(message: string): PasswordProblem {
  return { code: 'invalid_value', message }
}

function isOwn(password: string, { email, name }: PasswordOwner): boolean {
  const [local = '', domain = ''] = email.split('@')
  const words = [
    email,
    local,
    domain,
    name,
    ...name.split(/\s+/),
    ...local.split(/[^\p{L}\p{N}]+/u),
  ]
    .map(fold)
    .filter(word => word.length >= 3)
    .sort((a, b) => b.length - a.length)
  const own = fold(password)
  const rest = words.reduce((left, word) => left.replaceAll(word, ''), own)
  return rest !== own && rest.length < MIN_NOT_OWN
}

function isCommon(password: string): boolean {
  if (COMMON_PASSWORDS.has(fold(password))) return true
  // Password123! and P4ssw0rd2026 are as well known as password.
  const text = password.toLowerCase()
  const core = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '')
  return [text, core, toLetters(text), toLetters(core)]
    .map(spelling => spelling.replace(/[^\p{L}]/gu, ''))
    .some(isCommonBase)
}

function toLetters(text: string): string {
  return [...text].map(letter => LEET[letter] ?? letter).join('')
}

/** Returns whether fewer than three characters of `text` remain without its common words. */
function isCommonBase(text: string): boolean {
  const rest = COMMON_BASES.reduce((left, word) => left.replaceAll(word, ''), text)
  return rest !== text && rest.length < 3
}

/**
 * Returns whether most characters are predictable from the one before: the same, the next one, or a
 * neighbouring key.
 */
function isPattern(password: string): boolean {
  const points = [...password.toLowerCase()]
  if (new Set(points).size < MIN_UNPREDICTABLE) return true
  const unit = findUnit(points)
  return countUnpredictable(points.slice(0, unit)) < MIN_UNPREDICTABLE || unit < MIN_UNPREDICTABLE
}

function countUnpredictable(points: readonly string[]): number {
  return points.filter((point, at) => {
    const before = points[at - 1]
    if (before === undefined) return true
    const distance = (point.codePointAt(0) ?? 0) - (before.codePointAt(0) ?? 0)
    return Math.abs(distance) > 1 && !STEPS.has(before + point)
  }).length
}

/** Returns the length of the shortest prefix whose repetition is the whole text. */
function findUnit(points: readonly string[]): number {
  for (let unit = 1; unit <= points.length / 2; unit++) {
    if (points.every((point, at) => point === points[at % unit])) return unit
  }
  return points.length
}

function fold(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

/**
 * Common words in passwords. Only other characters count, without digits and symbols at the ends.
 */
const COMMON_BASES: readonly string[] = words(`
  administrator password passwort motdepasse contrasena iloveyou letmein welcome qwertyuiop qwertzuiop azertyuiop
  qwerty qwertz azerty asdfghjkl changeme changeit default baseball basketball football princess sunshine superman
  batman starwars pokemon monkey dragon master shadow trustno hello login admin access secret sommer winter summer
  spring autumn january february december monday friday whatever internet computer samsung google facebook tidings
  abcdefgh abcdef abc test guest root user demo temp love please enter system server
`)

/** Frequently leaked passwords with at least 12 characters, in lower case and without symbols. */
const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  words(`
    correcthorsebatterystaple correcthorsebattery correctbatterystaple horsebatterystaple
    thequickbrownfox quickbrownfoxjumps thequickbrownfoxjumps thequickbrownfoxjumpsoverthelazydog
    iloveyouforever iloveyousomuch iloveyoubabygirl ihateyouallsomuch mynameisjohn jesuschrist jesuslovesme
    jesusismylord godisgoodallthetime liverpoolfc1892 liverpool1234 manchesterunited manchestercity chelseafc1905
    arsenalfc1886 realmadrid1234 barcelona1899 fcbayernmuenchen dallascowboys chicagobulls newyorkyankees
    harrypotter123 gameofthrones thelordoftherings lordoftherings maytheforcebewithyou lukeskywalker
    spongebobsquarepants supercalifragilisticexpialidocious abracadabra123 opensesame123 tobeornottobe
    ncc1701enterprise blink182blink182 linkinpark123 metallica1234 michaeljackson elvispresley mercedesbenz
    harleydavidson volkswagen123 christopher1 alexander123 elizabeth1234 charlotte123 jacqueline123 sebastian123
    unitedstates unitedkingdom southafrica1 philippines1 switzerland1 deutschland1 netherlands1 argentina1234
    thisismypassword thisisapassword ihatepasswords myvoiceismypassport mypasswordisstrong idontknowthis
    idontremember dontforgetthis forgotmypassword nopasswordneeded nopassword123 passwordispassword
    supersecret123 topsecret1234 verysecurepassword securepassword verysecret123 strongpassword strongpassword1
    postgrespostgres kubernetes123 raspberrypi123 ubuntuubuntu debiandebian supervisor123 sysadminsysadmin
    happybirthday happynewyear merrychristmas valentinesday thankyouverymuch goodmorning123 cheesecake123
    chocolate1234 strawberry123 butterfly1234 watermelon123 blueberrypie cookiemonster hellokitty123 mickeymouse123
    donaldduck123 scoobydoo1234 littlemermaid sleepingbeauty beautifulgirl prettyprincess rockandroll123
    breakingbad123 onetwothreefour onetwothreefourfive zaq12wsxcde34rfv 1qazxsw23edcvfr4 q1w2e3r4t5y6 asdf1234qwer
    qwer1234asdf qweasdzxc123 123qweasdzxc 1qaz2wsx3edc a1b2c3d4e5f6 aabbccddeeff abcd1234efgh
  `),
)

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
