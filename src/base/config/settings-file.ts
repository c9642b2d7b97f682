import { dirname, resolve } from 'node:path'
import { parse, TomlError } from 'smol-toml'
import { findClosest } from '../closest.ts'
import { findRemoved, isSettingName, NAMES } from './names.ts'
import { PROVIDER_PARTS } from './openid.ts'

/**
 * Parses a settings file: one table of TOML, in which a setting has the name of its variable in
 * lower case. Returns the values by variable. Relative paths begin at the folder of the file. Adds
 * a sentence to `problems` for each mistake.
 */
export function parseSettingsFile(
  text: string,
  file: string,
  problems: string[],
): Record<string, string> {
  const values: Record<string, string> = {}
  for (const [name, given] of Object.entries(parseToml(text, file, problems))) {
    const variable = name.toUpperCase()
    const value = toText(given)
    const removed = findRemoved(variable)
    if (removed !== undefined) problems.push(`${name} in ${file} was ${removed}`)
    else if (name !== name.toLowerCase() || !isSettingName(variable)) {
      problems.push(`${name} in ${file} is no setting. ${suggest(name)}`)
    } else if (value === undefined) {
      problems.push(
        `${name} in ${file} must be a text, a whole number, true, false, or a list of them.`,
      )
    } else {
      values[variable] = isPath(variable) && value !== '' ? resolve(dirname(file), value) : value
    }
  }
  return values
}

function parseToml(text: string, file: string, problems: string[]): object {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The other lines of the message quote the file, which can contain secrets.
    const [reason] = error.message.split('\n')
    problems.push(`${file} cannot be read at line ${error.line}. ${reason}.`)
    return {}
  }
}

/** Returns a value as the environment would have it. A list is separated by commas. */
function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || Number.isInteger(value)) return String(value)
  if (!Array.isArray(value)) return undefined
  const parts = value.map(part => (Array.isArray(part) ? undefined : toText(part)))
  return parts.includes(undefined) ? undefined : parts.join(',')
}

const FOLDERS = new Set(['DATA_DIR', 'BACKUP_DIR'])

function isPath(variable: string): boolean {
  return FOLDERS.has(variable) || variable.endsWith('_FILE')
}

function suggest(name: string): string {
  if (name.toLowerCase().startsWith('oidc_')) {
    const parts = PROVIDER_PARTS.map(part => part.toLowerCase())
    return `After the name of the provider comes one of ${parts.join(', ')}.`
  }
  const closest = findClosest(name, NAMES)
  return closest === undefined ? 'Remove it.' : `Did you mean ${closest.toLowerCase()}?`
}
