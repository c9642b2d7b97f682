import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from './length.ts'

/** Fewer characters than this that cannot be told from the one before make a pattern. */
const MIN_SURPRISES = 5
/** Fewer characters than this beside one's own name and address are no secret. */
const MIN_OWN = 6

// Each pair of neighbours is a step that fingers take without a thought.
const RUNS = [
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
  RUNS.flatMap(run =>
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

/** Whose password it is to be: it must not be what everybody knows of them. */
export interface PasswordOwner {
  email: string
  name: string
}

/** A problem of a password, as a field's issue. */
interface PasswordProblem {
  code: 'too_short' | 'too_long' | 'invalid_value'
  message: string
}

/** The spelling that is hashed: however a keyboard composes accents, the same password is the same text. */
export function normalizePassword(text: string): string {
  return text.normalize('NFC')
}

/**
 * What speaks against `password`: its length in code points, that it is well known or a pattern, or that it is made of
 * its owner's name or address. There are no rules of composition.
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
      message: `Must have at least ${MIN_PASSWORD_LENGTH} characters: a few unrelated words are easy to remember`,
    }
  }
  if (length > MAX_PASSWORD_LENGTH) {
    return { code: 'too_long', message: `Must have at most ${MAX_PASSWORD_LENGTH} characters` }
  }
  if (isOwn(text, owner)) return unfit('Must not be made of your name or e-mail address')
  if (isCommon(text)) return unfit('Must not be one of the passwords that are tried first')
  if (isPattern(text)) return unfit('Must not be a pattern like 123456, qwerty or a repetition')
  return undefined
}

function unfit(rule: string): PasswordProblem {
  return { code: 'invalid_value', message: `${rule}: a few unrelated words are easy to remember` }
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
  return rest !== own && rest.length < MIN_OWN
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

/** Whether words that everybody thinks of leave next to nothing of `text`. */
function isCommonBase(text: string): boolean {
  const rest = COMMON_BASES.reduce((left, word) => left.replaceAll(word, ''), text)
  return rest !== text && rest.length < 3
}

/** Whether most characters follow from the one before: the same again, the next one, or a neighbouring key. */
function isPattern(password: string): boolean {
  const points = [...password.toLowerCase()]
  if (new Set(points).size < MIN_SURPRISES) return true
  const unit = findUnit(points)
  return countSurprises(points.slice(0, unit)) < MIN_SURPRISES || unit < MIN_SURPRISES
}

function countSurprises(points: readonly string[]): number {
  return points.filter((point, at) => {
    const before = points[at - 1]
    if (before === undefined) return true
    const distance = (point.codePointAt(0) ?? 0) - (before.codePointAt(0) ?? 0)
    return Math.abs(distance) > 1 && !STEPS.has(before + point)
  }).length
}

/** The length of the shortest beginning whose repetition is the whole. */
function findUnit(points: readonly string[]): number {
  for (let unit = 1; unit <= points.length / 2; unit++) {
    if (points.every((point, at) => point === points[at % unit])) return unit
  }
  return points.length
}

function fold(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

/** Common parts of passwords. Only the characters beside them, without digits and signs at the ends, count. */
const COMMON_BASES: readonly string[] = words(`
  administrator password passwort motdepasse contrasena iloveyou letmein welcome qwertyuiop qwertzuiop azertyuiop
  qwerty qwertz azerty asdfghjkl changeme changeit default baseball basketball football princess sunshine superman
  batman starwars pokemon monkey dragon master shadow trustno hello login admin access secret sommer winter summer
  spring autumn january february december monday friday whatever internet computer samsung google facebook tidings
  abcdefgh abcdef abc test guest root user demo temp love please enter system server
`)

/** Frequent leaked passwords of 12 characters and more, without signs and in lower case. */
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
