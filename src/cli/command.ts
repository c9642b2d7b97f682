import { defineCommand, type ArgsDef, type CommandDef, type ParsedArgs } from 'citty'

/**
 * The output of a command. `text` is printed without --json, and `json` with it; undefined if the
 * command has printed it.
 */
interface Output {
  text: string | undefined
  json: unknown
  /** True when the command ran and found a problem. The exit code is then 1. */
  hasFailed?: boolean
}

/** The command line is wrong. The exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

interface CommandOptions<Args extends ArgsDef> {
  name: string
  description: string
  /** Complete command lines, shown by --help. */
  examples: string[]
  args: Args
  /** True if any number of words can follow. */
  hasWords?: boolean
  /** `words` is the command line, with each option as `--name=value`. */
  run(args: ParsedArgs<Args>, words: readonly string[]): Promise<Output | void>
}

const JSON_ARG = {
  json: { type: 'boolean', description: 'Print JSON', default: false },
} as const

const EXAMPLES = new WeakMap<object, string[]>()

/** Defines a command of `tidings`. Every command accepts --json and refuses unknown options. */
export function command<const Args extends ArgsDef>({
  name,
  description,
  examples,
  args,
  hasWords = false,
  run,
}: CommandOptions<Args>): CommandDef {
  const all = { ...args, ...JSON_ARG }
  const def = defineCommand({
    meta: { name, description },
    args: all as ArgsDef,
    async run({ args: given, rawArgs }) {
      refuseUnknown(given, all, hasWords)
      // citty has parsed them by these definitions.
      const output = await run(given as unknown as ParsedArgs<Args>, rawArgs)
      if (!output) return
      const printed = given['json'] ? JSON.stringify(output.json) : output.text
      if (printed !== undefined) console.log(printed)
      if (output.hasFailed) process.exitCode = 1
    },
  })
  EXAMPLES.set(def, examples)
  return def
}

/** Defines a command that has others. */
export function commandGroup({
  name,
  description,
  examples,
  commands,
}: Pick<CommandOptions<ArgsDef>, 'name' | 'description' | 'examples'> & {
  commands: Record<string, CommandDef>
}): CommandDef {
  const def = defineCommand({ meta: { name, description }, subCommands: commands })
  EXAMPLES.set(def, examples)
  return def
}

/** Returns the value of an option that has one of these names. Throws a `UsageError`. */
export function toOneOf<Name extends string>(
  option: string,
  names: readonly Name[],
  text: string,
): Name {
  const name = names.find(one => one === text)
  if (!name) throw new UsageError(`--${option} must be one of ${names.join(', ')}.`)
  return name
}

/** Returns the examples section of --help. Empty when there are none. */
export function toExamples(def: CommandDef): string {
  const examples = EXAMPLES.get(def) ?? []
  return examples.length === 0
    ? ''
    : `EXAMPLES\n\n${examples.map(line => `  ${line}`).join('\n')}\n`
}

/** Matches an option: one or two dashes, a letter, and maybe a value after `=`. */
const OPTION = /^--?[a-z][\w-]*(=|$)/i

/**
 * Rewrites the words after a command, so that text which begins with a dash, like `-5 % today`, is
 * not taken for an option: values follow their option after `=`, and arguments follow `--`. Throws
 * a `UsageError` for an option without its value.
 */
export function protectText(words: readonly string[], known: ArgsDef): string[] {
  const end = words.indexOf('--')
  const options: string[] = []
  const texts: string[] = end < 0 ? [] : words.slice(end + 1)
  const before = words.slice(0, end < 0 ? words.length : end)
  const plain: string[] = []
  for (let at = 0; at < before.length; at++) {
    const [word = '', next] = [before[at], before[at + 1]]
    if (!OPTION.test(word)) plain.push(word)
    else if (word.includes('=') || !takesValue(word, known)) options.push(word)
    else if (next === undefined || OPTION.test(next)) throw toMissing(word)
    else {
      // The parser reads a short option only with a space.
      options.push(...(word.startsWith('--') ? [`${word}=${next}`] : [word, next]))
      at++
    }
  }
  return [...options, '--', ...plain, ...texts]
}

function toMissing(option: string): UsageError {
  const hint = option.startsWith('--') ? ` A value that begins with a dash is ${option}=-x.` : ''
  return new UsageError(`The option ${option} needs a value.${hint}`)
}

function takesValue(word: string, known: ArgsDef): boolean {
  const name = word.replace(/^--?/, '')
  return Object.entries(known).some(
    ([own, { type = 'positional' }]) =>
      type !== 'positional' && type !== 'boolean' && listNames(own, known).includes(name),
  )
}

/** Lists the spellings of an option. */
function listNames(name: string, known: ArgsDef): string[] {
  const definition = known[name] ?? {}
  const aliases = 'alias' in definition ? [definition.alias ?? []].flat() : []
  return [name, toKebab(name), toCamel(name), ...aliases]
}

function refuseUnknown(given: Record<string, unknown>, known: ArgsDef, hasWords: boolean): void {
  const names = new Set(Object.keys(known).flatMap(name => listNames(name, known)))
  const positionals = Object.values(known).filter(({ type }) => type === 'positional').length
  const unknown = Object.keys(given).find(name => name !== '_' && !names.has(name))
  if (unknown !== undefined) {
    const hint = positionals > 0 ? ' Text that begins with a dash goes after --.' : ''
    throw new UsageError(`Unknown option --${unknown}.${hint}`)
  }
  const extra = (given['_'] as string[])[positionals]
  if (extra !== undefined && !hasWords)
    throw new UsageError(`Unexpected argument ${JSON.stringify(extra)}. Put text in quotes.`)
}

function toKebab(name: string): string {
  return name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}

function toCamel(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
