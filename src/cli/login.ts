import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createClient, type Client } from '../../clients/typescript/src/client.ts'
import { toRawNumber } from '../http/exact-json.ts'
import { command, UsageError } from './command.ts'
import { askHidden } from './hidden-input.ts'

const DEFAULT_URL = 'http://localhost:3000'

/** The server and the API key that `tidings login` stored. */
interface Login {
  url: string
  apiKey: string
}

export const login = command({
  name: 'login',
  description:
    'Store the address of a server and an API key, for send and identify. Reads the key from the terminal or from standard input.',
  examples: [
    'tidings login --url https://tidings.example.com',
    'pass show tidings-key | tidings login --url https://tidings.example.com',
  ],
  args: {
    // No option takes the key itself, because process lists and shell histories show it.
    url: { type: 'string', description: 'Address of the server. By default that in TIDINGS_URL' },
  },
  async run(args) {
    const url = args.url ?? process.env['TIDINGS_URL'] ?? DEFAULT_URL
    if (!URL.canParse(url)) {
      throw new UsageError(`--url must be a URL like https://tidings.example.com. It is ${url}.`)
    }
    const apiKey = (await readKey()).trim()
    if (apiKey === '') throw new UsageError('Enter an API key, or pass it on standard input.')
    const { project, key } = await createClient({ baseUrl: url, apiKey, retries: 0 }).me()
    const file = toFile()
    writeLogin(file, { url, apiKey })
    return {
      json: { url, project, key: { id: key.id, name: key.name }, file },
      text: `Stored the key "${key.name}" of the project "${project.name}" in ${file}`,
    }
  },
})

/**
 * Creates a client from TIDINGS_URL and TIDINGS_API_KEY, or from the stored login. Throws a
 * `UsageError` if neither has a key.
 */
export function createApiClient(options: { retries?: number } = {}): Client {
  const { TIDINGS_URL: url, TIDINGS_API_KEY: key } = process.env
  const stored = key ? undefined : readLogin(toFile())
  // A stored key is a secret of the server that it was stored for.
  const isOther = stored !== undefined && url !== undefined && url !== stored.url
  const apiKey = key || (isOther ? undefined : stored?.apiKey)
  if (!apiKey) {
    const reason = isOther ? `The stored key is for ${stored.url}, and TIDINGS_URL is ${url}. ` : ''
    throw new UsageError(
      `${reason}Set TIDINGS_API_KEY to an API key, or run \`tidings login\`. Create a key with \`tidings keys create\`.`,
    )
  }
  const baseUrl = url ?? stored?.url ?? DEFAULT_URL
  if (!URL.canParse(baseUrl)) {
    throw new UsageError(`TIDINGS_URL must be a URL like ${DEFAULT_URL}. It is ${baseUrl}.`)
  }
  // The command prints numbers as they were sent.
  return createClient({ baseUrl, apiKey, parseNumber: toRawNumber, ...options })
}

async function readKey(): Promise<string> {
  return process.stdin.isTTY ? askHidden('API key: ') : readFileSync(0, 'utf8')
}

function toFile(): string {
  const folder = process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config')
  return join(folder, 'tidings/login.json')
}

/** Writes the file anew, so that only its owner can read it. */
function writeLogin(file: string, login: Login): void {
  const draft = `${file}.${process.pid}`
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  try {
    writeFileSync(draft, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Returns the stored login. Undefined if there is none. */
function readLogin(file: string): Login | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const { url, apiKey } = JSON.parse(text) as Partial<Login>
    if (typeof url === 'string' && typeof apiKey === 'string') return { url, apiKey }
  } catch {
    // Text that is not JSON gets the same error.
  }
  throw new UsageError(`${file} is damaged. Run \`tidings login\` again.`)
}
