import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, parseConfig, type Config, type Env } from '../base/config.ts'
import { isSecretName, overrideSettings } from '../base/config/names.ts'
import { parseSettingsFile } from '../base/config/settings-file.ts'
import { UsageError } from './command.ts'

/** The settings of a command, and where they come from. */
export interface Settings {
  config: Config
  /** The settings file. Undefined if none was read. */
  file: string | undefined
  /** The option, variable or setting that names the installation. Undefined for the default. */
  source: string | undefined
  /** Sentences about the settings file, each with a remedy. */
  warnings: string[]
}

/** The settings file of the server on this machine. */
const SYSTEM_FILE = '/etc/tidings/tidings.toml'

/**
 * Reads the settings. Options come before the environment, and the environment before the settings
 * file: the one in TIDINGS_CONFIG, or that of the server on this machine. `options` are variables
 * that the command line sets. Throws a `ConfigError` that lists every problem.
 */
export function readSettings(
  options: Env = {},
  { env = process.env, systemFile = SYSTEM_FILE }: { env?: Env; systemFile?: string } = {},
): Settings {
  const problems: string[] = []
  const own = overrideSettings(env, options)
  const found = findFile(own, systemFile, problems)
  const values = overrideSettings(found?.values ?? {}, own)
  const isFromFile = (name: string) => own[name] === undefined && values[name] !== undefined
  const describe = (name: string) =>
    isFromFile(name) ? `${name.toLowerCase()} in ${found?.file}` : name
  const config = parse(values, problems, describe)
  const isOwnFolder = found?.values['DATA_DIR'] === resolve(options['DATA_DIR'] ?? '')
  if (options['DATA_DIR'] && config.databaseUrl && !isOwnFolder) {
    throw new UsageError(
      `--data-dir names a folder with its own database, and ${describe('DATABASE_URL')} names another one. Leave one of them out.`,
    )
  }
  const [name] = ['DATABASE_URL', 'DATA_DIR']
    .flatMap(one => [one, `${one}_FILE`])
    .filter(one => values[one] !== undefined)
  const source = name === 'DATA_DIR' && options['DATA_DIR'] ? '--data-dir' : name && describe(name)
  return { config, file: found?.file, source, warnings: found ? findWarnings(found) : [] }
}

interface SettingsFile {
  file: string
  values: Env
}

/**
 * Reads the settings file. The one of the server on this machine counts only for the installation
 * that it names.
 */
function findFile(own: Env, systemFile: string, problems: string[]): SettingsFile | undefined {
  const { TIDINGS_CONFIG: given, DATA_DIR: folder } = own
  const file = given ?? systemFile
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (given !== undefined) {
      problems.push(`TIDINGS_CONFIG must be the path of a readable file. It is ${file}.`)
    } else if (code !== 'ENOENT' && code !== 'ENOTDIR' && !folder && !own['DATABASE_URL']) {
      throw new Error(
        `${file} cannot be read. Run the command as the user of the server: sudo -u tidings tidings …`,
      )
    }
    return undefined
  }
  const isSystemFile = given === undefined
  const mistakes: string[] = []
  const values = parseSettingsFile(text, resolve(file), mistakes)
  const { DATA_DIR: filesFolder } = values
  if (isSystemFile && folder && filesFolder && resolve(folder) !== filesFolder) return undefined
  problems.push(...mistakes)
  return { file: resolve(file), values }
}

/** Parses the settings. Names the place of each problem by `describe`. */
function parse(values: Env, problems: string[], describe: (name: string) => string): Config {
  try {
    const config = parseConfig(values, path => readFileSync(path, 'utf8'))
    if (problems.length === 0) return config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    problems.push(...error.problems.map(text => text.replace(/^[A-Z0-9_]+/, describe)))
  }
  throw new ConfigError(problems)
}

function findWarnings({ file, values }: SettingsFile): string[] {
  const isSecret = Object.keys(values).some(isSecretName)
  // The group is that of the server.
  if (!isSecret || (statSync(file).mode & 0o007) === 0) return []
  return [`Other users can read the secrets in ${file}. Run: chmod o= ${file}`]
}
