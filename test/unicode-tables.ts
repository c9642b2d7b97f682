import { join } from 'node:path'

// The letters, digits, signs, marks and foldings of Unicode, as sql/functions/unicode.sql has them.
// Run this file to write it anew, after an update of Bun to a later version of Unicode.

export const UNICODE_FILE = join(import.meta.dirname, '../sql/functions/unicode.sql')

// An apostrophe of Ukrainian is used in Thai, too, so the script itself counts there.
const UNSPACED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}]/u
/** Capital letters of Greek and Cyrillic, which are frequent. */
const isFrequent = (code: number) => code >= 0x391 && code <= 0x42f

/**
 * Marks, and characters inside words that nobody sees: the soft hyphen, both joiners, and two
 * characters that forbid a break. The space of no width separates words.
 */
const LEFT_OUT = /[\p{M}\u00ad\u200c\u200d\u2060\ufeff]/u

/** Folds a text by full case folding, and leaves out its accents and what nobody sees. */
export function foldText(text: string): string {
  const folded = [...text.normalize('NFC')].map(one =>
    // Two steps make the folding full: ß is SS, and then ss. It keeps the dotless i.
    one === 'ı' ? one : one.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ'),
  )
  return [...folded.join('').normalize('NFD')].filter(one => !LEFT_OUT.test(one)).join('')
}

export function isLetter(character: string): boolean {
  return /[\p{L}\p{N}]/u.test(character)
}

/** Returns true for letters of scripts that are written without spaces. */
export function isUnspaced(character: string): boolean {
  return isLetter(character) && UNSPACED.test(character)
}

function isLeftOut(character: string): boolean {
  return LEFT_OUT.test(character)
}

/** Returns whether a character of a text in NFD is folded to other ones. */
function isFolded(character: string): boolean {
  return (
    !isLeftOut(character) &&
    character.normalize('NFD') === character &&
    foldText(character) !== character
  )
}

/** Returns the text of sql/functions/unicode.sql. */
export function writeUnicodeSql(): string {
  const characters: string[] = []
  for (let code = 0x80; code < 0x11_0000; code++) {
    if (code < 0xd800 || code > 0xdfff) characters.push(String.fromCodePoint(code))
  }
  const folded = characters.filter(isFolded)
  const isOne = (one: string) => [...foldText(one)].length === 1
  const frequent = folded.filter(one => isOne(one) && isFrequent(one.codePointAt(0) ?? 0))
  const rare = folded.filter(one => isOne(one) && !frequent.includes(one))
  const latin = rare.filter(one => one < '\u0250')
  const groups = {
    frequent_letters: frequent,
    latin_letters: latin,
    rare_letters: rare.filter(one => !latin.includes(one)),
  }
  const long = folded.filter(one => !isOne(one))
  return `-- Written by test/unicode-tables.ts, from Unicode ${process.versions['unicode']}.

-- Returns the letters and digits beyond ASCII, for a bracket expression.
${toFunction('other_letters', characters.filter(isLetter))}
-- Returns the letters of scripts that are written without spaces, for a bracket expression.
${toFunction('unspaced_letters', characters.filter(isUnspaced))}
-- Returns the marks, and what nobody sees, such as soft hyphens, for a bracket expression.
${toFunction('unseen_marks', characters.filter(isLeftOut))}
-- Returns the letters of some runs, or what they are folded to. A run is the code of its first and
-- of its last letter, the step between its letters, and the distance to their foldings.
create or replace function letters_of_runs(runs int[], are_folded boolean) returns text
language sql immutable parallel safe
return (
  select string_agg(chr(l.code + case when are_folded then runs[r.n][4] else 0 end), '' order by l.code)
  from generate_subscripts(runs, 1) as r (n)
    cross join lateral generate_series(runs[r.n][1], runs[r.n][2], runs[r.n][3]) as l (code)
);
${Object.entries(groups)
  .map(
    ([name, letters]) => `
-- Returns letters that are folded to one other letter each, or those.
create or replace function ${name}(are_folded boolean) returns text
language sql immutable parallel safe
return letters_of_runs(${toLiteral(toRuns(letters))}, are_folded);
`,
  )
  .join('')}
-- Folds the letters beyond ASCII of a text in NFD. Leaves out its marks, and what nobody sees.
-- Postgres computes the expressions without \`folded\` once in a session.
create or replace function fold_other_letters(content text) returns text
language plpgsql immutable parallel safe as $$
declare
  folded text collate "C" := content;
begin
  if folded !~ ('[' || unseen_marks() || ${toLiteral(toRanges(long))}
    || ${Object.keys(groups)
      .map(name => `${name}(false)`)
      .join(' || ')} || ']')
  then
    return folded;
  end if;
  -- The folding of this mark is a letter.
  folded := regexp_replace(replace(folded, E'\\u0345', E'\\u03b9'), '[' || unseen_marks() || ']+', '', 'g');
${Object.keys(groups)
  .map(
    name => `  if folded ~ ('[' || ${name}(false) || ']') then
    folded := translate(folded, ${name}(false), ${name}(true));
  end if;
`,
  )
  .join('')}  if folded ~ ${toLiteral(['[', ...toRanges(long), ']'])} then
${long
  .map(
    one => `    folded := replace(folded, ${toText([one])}, ${toText([foldText(one)])});
`,
  )
  .join('')}  end if;
  return folded;
end
$$;
`
}

/** A row of letters with the same distance to each other, and to what they are folded to. */
interface Run {
  first: number
  last: number
  step: number
  distance: number
}

/** Returns the literal of an array of runs. */
function toRuns(letters: string[]): string[] {
  const runs: Run[] = []
  for (const letter of letters) {
    const code = letter.codePointAt(0) ?? 0
    const distance = (foldText(letter).codePointAt(0) ?? 0) - code
    const run = runs.findLast(one => one.distance === distance)
    const step = run && code - run.last
    if (run && step && step <= 2 && (run.first === run.last || run.step === step)) {
      run.last = code
      run.step = step
    } else runs.push({ first: code, last: code, step: 1, distance })
  }
  const parts = runs.map(
    ({ first, last, step, distance }) => `{${first},${last},${step},${distance}}`,
  )
  return ['{', ...parts.map((part, n) => (n === 0 ? part : `,${part}`)), '}']
}

function toFunction(name: string, characters: string[]): string {
  return `create or replace function ${name}() returns text
language sql immutable parallel safe
return ${toLiteral(toRanges(characters))};
`
}

function toText(characters: string[]): string {
  return toLiteral(characters.map(toEscapes))
}

function toRanges(characters: string[]): string[] {
  const ranges: { first: number; last: number }[] = []
  for (const one of characters) {
    const code = one.codePointAt(0) ?? 0
    const range = ranges.at(-1)
    if (range && range.last === code - 1) range.last = code
    else ranges.push({ first: code, last: code })
  }
  return ranges.map(({ first, last }) =>
    first === last ? toEscape(first) : `${toEscape(first)}-${toEscape(last)}`,
  )
}

function toEscapes(text: string): string {
  return [...text].map(one => toEscape(one.codePointAt(0) ?? 0)).join('')
}

function toEscape(code: number): string {
  if (code < 0x80) return String.fromCodePoint(code)
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`
}

/** Returns a literal of SQL in lines of limited length. */
function toLiteral(parts: string[]): string {
  const lines = ['']
  for (const part of parts) {
    if ((lines.at(-1) ?? '').length + part.length > 110) lines.push('')
    lines.push(`${lines.pop()}${part}`)
  }
  return `E${lines.map(line => `'${line}'`).join('\n    ')}`
}

if (import.meta.main) await Bun.write(UNICODE_FILE, writeUnicodeSql())
