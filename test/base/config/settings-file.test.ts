import { expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../../src/base/config.ts'
import { NAMES } from '../../../src/base/config/names.ts'
import { parseSettingsFile } from '../../../src/base/config/settings-file.ts'
import { readSettings } from '../../../src/cli/settings.ts'
import { makeFolder } from '../../support/scratch.ts'

const folder = makeFolder()
const FILE = join(folder, 'tidings.toml')

function write(text: string, mode = 0o640): string {
  writeFileSync(FILE, text)
  chmodSync(FILE, mode)
  return FILE
}

function parse(text: string): { values: Record<string, string>; problems: string[] } {
  const problems: string[] = []
  return { values: parseSettingsFile(text, '/etc/tidings/tidings.toml', problems), problems }
}

/** Reads settings with `text` as the file of this machine. */
function read(text: string, env: Record<string, string> = {}, options = {}) {
  return readSettings(options, { env, systemFile: write(text) })
}

function listProblems(work: () => unknown): string[] {
  try {
    work()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

test('a settings file accepts every setting, in lower case', () => {
  const names = [...NAMES, 'OIDC_MY_COMPANY_ISSUER', 'OIDC_MY_COMPANY_CLIENT_SECRET_FILE']
  const text = names.map(name => `${name.toLowerCase()} = '/x'`).join('\n')
  expect(parse(text)).toEqual({
    values: Object.fromEntries(names.map(name => [name, '/x'])),
    problems: [],
  })
})

test('a settings file has texts, numbers, switches and lists, and paths from its folder', () => {
  const { values, problems } = parse(`
    port = 8080
    passwords = false
    trusted_proxies = ['10.0.0.0/8', '::1']
    data_dir = '../../var/lib/tidings'
    app_secret_file = 'secret'
    quota_bytes_per_day = 50_000_000_000
    host = ''
  `)
  expect(problems).toEqual([])
  expect(values).toEqual({
    PORT: '8080',
    PASSWORDS: 'false',
    TRUSTED_PROXIES: '10.0.0.0/8,::1',
    DATA_DIR: '/var/lib/tidings',
    APP_SECRET_FILE: '/etc/tidings/secret',
    QUOTA_BYTES_PER_DAY: '50000000000',
    HOST: '',
  })
})

test.each([
  ['prot = 3000', 'prot in /etc/tidings/tidings.toml is no setting. Did you mean port?'],
  ['BASE_URL = "x"', 'Did you mean base_url?'],
  ['datadir = "x"', 'Did you mean data_dir?'],
  ['wrong = "x"', 'wrong in /etc/tidings/tidings.toml is no setting. Remove it.'],
  ['oidc_google_isuer = "x"', 'After the name of the provider comes one of issuer, client_id,'],
  ['[server]\nport = 1', 'server in /etc/tidings/tidings.toml is no setting.'],
  ['port = 1.5', 'port in /etc/tidings/tidings.toml must be a text, a whole number,'],
  ['port = 2026-01-01', 'port in /etc/tidings/tidings.toml must be a text,'],
  ['trusted_proxies = [["a"]]', 'trusted_proxies in /etc/tidings/tidings.toml must be a text,'],
  ['port = 1\nport = 2', '/etc/tidings/tidings.toml cannot be read at line 2.'],
])('a settings file with %p is refused', (text, problem) => {
  expect(parse(text).problems).toEqual([expect.stringContaining(problem)])
})

test('a message about a settings file quotes nothing of it', () => {
  const { problems } = parse('metrics_token = "hunter2\napp_secret = 5')
  expect(problems.join()).toContain('cannot be read at line 1')
  expect(problems.join()).not.toContain('hunter2')
})

test('the environment comes before the file, and an option before both', () => {
  const text = "port = 1\nhost = '::1'\nworkers = 2\napp_secret_file = 'secret'"
  const env = { PORT: '2', HOST: '', APP_SECRET: 'ab'.repeat(32), DATA_DIR_FILE: '/nowhere' }
  const { config, file, source } = read(text, env, { WORKERS: '3', DATA_DIR: '/data' })
  expect(config).toMatchObject({ port: 2, host: '::1', workers: 3, dataDir: '/data' })
  expect(config.appSecret).toEqual(Buffer.alloc(32, 0xab))
  expect([file, source]).toEqual([FILE, '--data-dir'])
})

test.each([
  ['', {}, undefined],
  ["data_dir = '/a'", {}, `data_dir in ${FILE}`],
  ["database_url = 'postgres://h/d'\ndata_dir = '/a'", {}, `database_url in ${FILE}`],
  ["data_dir = '/a'", { DATA_DIR: '/b' }, 'DATA_DIR'],
  ["data_dir = '/a'", { DATABASE_URL: 'postgres://h/d' }, 'DATABASE_URL'],
])('%p and the environment %p: the installation is named by %p', (text, env, source) => {
  expect(read(text, env).source).toBe(source as string)
})

test('the file of this machine does not count for another folder than its own', () => {
  const text = "data_dir = '/a'\nport = 1\nmistake = 1"
  const { config, file } = read(text, {}, { DATA_DIR: '/b' })
  expect([config.port, config.dataDir, file]).toEqual([3000, '/b', undefined])
  expect(listProblems(() => read(text, { DATA_DIR: '/a/' }))).toHaveLength(1)
  // A file that is named on purpose always counts.
  const named = { TIDINGS_CONFIG: write("data_dir = '/a'\nport = 1"), DATA_DIR: '/b' }
  expect(readSettings({}, { env: named }).config).toMatchObject({ port: 1, dataDir: '/b' })
})

test('--data-dir and the URL of another database contradict each other', () => {
  const env = { DATABASE_URL: 'postgres://h/d' }
  expect(() => read('', env, { DATA_DIR: '/b' })).toThrow('and DATABASE_URL names another one')
  const text = "database_url = 'postgres://h/d'\ndata_dir = '/a'"
  expect(read(text, {}, { DATA_DIR: '/a' }).source).toBe(`database_url in ${FILE}`)
})

test('problems name the place of a setting, and all of them are listed', () => {
  const env = { WORKERS: '99' }
  expect(listProblems(() => read("port = 99999\nhots = ''", env))).toEqual([
    `hots in ${FILE} is no setting. Did you mean host?`,
    `port in ${FILE} must be a port from 0 to 65535. It is "99999".`,
    'WORKERS must be a whole number from 1 to 16. It is "99".',
  ])
  const absent = { TIDINGS_CONFIG: '/nowhere/tidings.toml' }
  expect(listProblems(() => readSettings({}, { env: absent }))).toEqual([
    'TIDINGS_CONFIG must be the path of a readable file. It is /nowhere/tidings.toml.',
  ])
})

test('a file with secrets that other users can read is reported', () => {
  const text = "metrics_token = 'violet-anchor-77-meadow'"
  const check = (text: string, mode: number) =>
    readSettings({}, { env: { TIDINGS_CONFIG: write(text, mode) } }).warnings
  expect(check(text, 0o644)).toEqual([
    `Other users can read the secrets in ${FILE}. Run: chmod o= ${FILE}`,
  ])
  expect(check(text, 0o640)).toEqual([])
  expect(check('port = 1', 0o644)).toEqual([])
})
