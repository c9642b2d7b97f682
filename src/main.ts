#!/usr/bin/env bun
import { renderUsage, runCommand, type ArgsDef, type CommandDef } from 'citty'
import { apply } from './cli/apply.ts'
import { ask } from './cli/ask.ts'
import { backup, restore } from './cli/backup.ts'
import { commandGroup, protectText, toExamples, UsageError } from './cli/command.ts'
import { demo } from './cli/demo.ts'
import { doctor } from './cli/doctor.ts'
import { exportEvents } from './cli/export.ts'
import { health } from './cli/health.ts'
import { identify, send } from './cli/send.ts'
import { keys } from './cli/keys.ts'
import { migrate, serve } from './cli/serve.ts'
import { login } from './cli/login.ts'
import { owner } from './cli/owner.ts'
import { reindex } from './cli/reindex.ts'
import { run } from './cli/run.ts'
import { secrets } from './cli/secrets.ts'
import { licences, version } from './cli/version.ts'
import { webhook } from './cli/webhook.ts'
import { ConfigError } from './base/config.ts'
import { removeEscapeSequences } from './base/display-text.ts'
import { toReason } from './base/errors.ts'
import { explainSystemError } from './base/system-error.ts'

const OK = 0
const FAILED = 1
const USAGE = 2

const root = commandGroup({
  name: 'tidings',
  description: 'Know the moment it happens.',
  examples: [
    'tidings serve',
    'export TIDINGS_API_KEY=$(tidings keys create --json | jq -r .key)',
    "tidings send 'New payment' --channel payments --icon 💰",
  ],
  commands: {
    serve,
    demo,
    send,
    identify,
    ask,
    run,
    login,
    apply,
    keys,
    owner,
    secrets,
    webhook,
    backup,
    restore,
    export: exportEvents,
    migrate,
    reindex,
    doctor,
    health,
    version,
    licences,
  },
})

process.exit(await main(process.argv.slice(2)))

/**
 * Runs a command line. Returns the exit code: 0 success, 1 or that of the command failure, 2
 * wrong usage or configuration.
 */
async function main(argv: string[]): Promise<number> {
  const path = findCommand(argv)
  const end = argv.indexOf('--')
  const options = argv.slice(0, end < 0 ? argv.length : end)
  if (argv.length === 0 || options.includes('--help') || options.includes('-h')) {
    console.log(await toHelp(path, argv))
    return argv.length === 0 ? USAGE : OK
  }
  try {
    await runCommand(root, { rawArgs: toParsable(path, argv) })
    return Number(process.exitCode ?? OK)
  } catch (error) {
    const isUsage =
      error instanceof UsageError || error instanceof ConfigError || isParseError(error)
    // Error messages of citty contain escape codes for colours.
    const message = isParseError(error)
      ? removeEscapeSequences(error.message)
      : (explainSystemError(error) ?? toReason(error))
    if (argv.includes('--json')) console.error(JSON.stringify({ error: message }))
    else if (!isUsage || error instanceof ConfigError) console.error(message)
    else console.error(`${message}\n\n${toHint(path, argv)}`)
    // For a plan, the other code says that something would change.
    return isUsage && !options.some(one => /^--plan(=|$)/.test(one))
      ? USAGE
      : Number(process.exitCode ?? FAILED)
  }
}

/** Returns the words that citty parses, with the text of a command apart from its options. */
function toParsable(path: readonly CommandDef[], argv: readonly string[]): string[] {
  if (argv[0] === '--version') return ['version']
  const words = path.length - 1
  const { args, subCommands } = path[words] ?? root
  if (!args || subCommands) return [...argv]
  return [...argv.slice(0, words), ...protectText(argv.slice(words), args as ArgsDef)]
}

/** Returns the commands in `argv`, from the root to the innermost. */
function findCommand(argv: string[]): CommandDef[] {
  const path: CommandDef[] = [root]
  for (const word of argv) {
    const subCommands = path.at(-1)?.subCommands as Record<string, CommandDef> | undefined
    const next = subCommands?.[word]
    if (!next) break
    path.push(next)
  }
  return path
}

async function toHelp(path: readonly CommandDef[], argv: readonly string[]): Promise<string> {
  const [command = root] = path.toReversed()
  // citty prints only one parent, so its name contains all words before the command.
  const parent = path.length > 1 ? { meta: { name: toName(argv, path.length - 2) } } : undefined
  // citty pads its columns with spaces.
  const usage = (await renderUsage(command, parent)).replace(/ +$/gm, '').trimEnd()
  const text = process.stdout.isTTY ? usage : removeEscapeSequences(usage)
  return `${text}\n\n${toExamples(command)}`
}

/** Returns the examples and the help command, to print after a usage error. */
function toHint(path: readonly CommandDef[], argv: readonly string[]): string {
  return `${toExamples(path.at(-1) ?? root)}\nHelp: ${toName(argv, path.length - 1)} --help`
}

/** Returns `tidings` and the first `words` words of the command line. */
function toName(argv: readonly string[], words: number): string {
  return ['tidings', ...argv.slice(0, words)].join(' ')
}

function isParseError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'CLIError'
}
