import { readFileSync } from 'node:fs'
import { createOwner } from '../access/sign-in/owners.ts'
import { hashPassword } from '../access/sign-in/credentials.ts'
import { findAccountByEmail } from '../access/sign-in/account.ts'
import { createResetLink } from '../access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../access/audit/audit.ts'
import type { Config } from '../base/config.ts'
import { sqlState, UNIQUE_VIOLATION } from '../database/sql.ts'
import { parseEmail } from '../base/config/values.ts'
import { toId } from '../base/ids.ts'
import { ensureFirstProject } from '../server/bootstrap.ts'
import { findPasswordProblem } from '../base/passwords/policy.ts'
import { command, commandGroup, UsageError } from './command.ts'
import { DATA_DIR, withDatabase } from './environment.ts'

const MAX_NAME = 100
const LINK_NOTE =
  'The link works once and expires in one hour. Anyone who has it can set the password.'

const create = command({
  name: 'create',
  description:
    'Create an operator account that owns every organization. Without --password-file, print a link to set the password.',
  examples: [
    "tidings owner create --email ada@example.com --name 'Ada Lovelace'",
    'tidings owner create --email ada@example.com --password-file /run/secrets/owner',
    'pass show tidings | tidings owner create --email ada@example.com --password-file -',
  ],
  args: {
    ...DATA_DIR,
    email: { type: 'string', required: true, description: 'E-mail address for signing in' },
    name: {
      type: 'string',
      description: 'Display name; by default the part of the address before the @',
    },
    // No option takes the password itself, because process lists and shell histories show it.
    'password-file': {
      type: 'string',
      description: 'File that contains the password, or - for standard input',
    },
  },
  async run(args) {
    const email = toEmail(args.email)
    const name = toName(args.name ?? email.split('@')[0] ?? '')
    const password =
      args['password-file'] === undefined
        ? undefined
        : readPassword(args['password-file'], { email, name })
    return withDatabase(args, async (sql, { config }) => {
      const passwordHash = password === undefined ? null : await hashPassword(password, email)
      const made = await sql
        .begin(async tx => {
          await ensureFirstProject(tx)
          const accountId = await createOwner(tx, COMMAND_LINE, { name, email, passwordHash })
          const link =
            passwordHash === null ? await createResetLink(tx, COMMAND_LINE, accountId) : undefined
          return { accountId, link }
        })
        .catch((error: unknown) => {
          if (sqlState(error) !== UNIQUE_VIOLATION) throw error
          throw new Error(
            `${email} already has an account. Run \`tidings owner reset\` to set a new password.`,
          )
        })
      const account = { id: toId('per', made.accountId), email, name }
      if (!made.link)
        return { json: account, text: `${email} can sign in at ${toUrl(config, '/')}` }
      const link = toLink(config, made.link)
      return {
        json: { ...account, ...link },
        text: `Created ${email}. Set the password here:\n\n  ${link.url}\n\n${LINK_NOTE}`,
      }
    })
  },
})

const reset = command({
  name: 'reset',
  description:
    'Print a one-time link to set a new password for any account. It also ends the sign-in delay after failed attempts.',
  examples: [
    'tidings owner reset --email ada@example.com',
    'tidings owner reset --email ada@example.com --json | jq -r .url',
  ],
  args: {
    ...DATA_DIR,
    email: { type: 'string', required: true, description: 'E-mail address for signing in' },
  },
  async run(args) {
    const email = toEmail(args.email)
    return withDatabase(args, async (sql, { config }) => {
      const accountId = await findAccountByEmail(sql, email)
      if (accountId === undefined) {
        throw new Error(
          `No account has the e-mail address ${email}. Create an owner with \`tidings owner create\`.`,
        )
      }
      const link = toLink(
        config,
        await sql.begin(tx => createResetLink(tx, COMMAND_LINE, accountId)),
      )
      return {
        json: { email, ...link },
        text: `Set a new password for ${email} here:\n\n  ${link.url}\n\n${LINK_NOTE}`,
      }
    })
  },
})

export const owner = commandGroup({
  name: 'owner',
  description: 'Create an owner, or reset the password of an account.',
  examples: [
    'tidings owner create --email ada@example.com',
    'tidings owner reset --email ada@example.com',
  ],
  commands: { create, reset },
})

function toLink(config: Config, { token, expiresAt }: { token: string; expiresAt: Date }) {
  return { url: toUrl(config, `/reset#${token}`), expiresAt: expiresAt.toISOString() }
}

function toUrl({ baseUrl, port }: Config, path: string): string {
  return `${baseUrl ?? `http://localhost:${port}`}${path}`
}

function toEmail(text: string): string {
  const email = parseEmail(text)
  if (email === undefined) throw new UsageError('--email must be an e-mail address.')
  return email
}

function toName(text: string): string {
  const name = text.trim()
  if (name !== '' && [...name].length <= MAX_NAME) return name
  throw new UsageError(`--name must have 1 to ${MAX_NAME} characters.`)
}

function readPassword(file: string, owner: { email: string; name: string }): string {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch {
    throw new UsageError(
      '--password-file must be the path of a readable file, or - for standard input.',
    )
  }
  const password = text.replace(/\r?\n?$/, '')
  const problem = findPasswordProblem(password, owner)
  if (problem) throw new UsageError(`The password was not accepted. ${problem.message}`)
  return password
}
