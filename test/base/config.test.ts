import { describe, expect, test } from 'bun:test'
import { ConfigError, parseConfig, type Config } from '../../src/base/config.ts'
import { toTimeZone } from '../../src/base/config/values.ts'

const noFile = (path: string): string => {
  throw new Error(`ENOENT ${path}`)
}

/** Returns every problem of a configuration. */
function listProblems(env: Record<string, string>, readFile = noFile): string[] {
  try {
    parseConfig(env, readFile)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

test('EGRESS_PROXY allows the variables of the environment, which count for nothing without it', () => {
  const usual = { HTTPS_PROXY: 'proxy.test:3128', NO_PROXY: '.lan' }
  expect(parseConfig(usual, noFile).egressProxy).toBeUndefined()
  const proxyOf = (env: Record<string, string>) =>
    parseConfig({ EGRESS_PROXY: 'environment', ...env }, noFile).egressProxy
  const url = 'http://proxy.test:3128/'
  expect(proxyOf(usual)).toEqual({ url, noProxy: '.lan', resolvesNames: false })
  expect(proxyOf({ https_proxy: url, no_proxy: 'a', EGRESS_PROXY_RESOLVES: 'on' })).toEqual({
    url,
    noProxy: 'a',
    resolvesNames: true,
  })
  expect(proxyOf({})).toBeUndefined()
  expect(
    listProblems({ EGRESS_PROXY: 'environment', HTTPS_PROXY: 'socks5://secret:word@a' }),
  ).toEqual([
    'HTTPS_PROXY must be a URL like http://proxy.example.com:3128. EGRESS_PROXY=environment uses it.',
  ])
  for (const text of ['https://a.test', 'socks5://a.test', 'http://a.test/path', 'a b']) {
    const [problem, ...others] = listProblems({ EGRESS_PROXY: text })
    expect(problem).toStartWith(
      'EGRESS_PROXY must be a URL like http://proxy.example.com:3128, or environment',
    )
    // It may contain a password.
    expect([others, problem?.includes(text)]).toEqual([[], false])
  }
})

test('an empty environment is a complete configuration', () => {
  // Others are undefined.
  const defaults: Partial<Config> = {
    port: 3000,
    host: '127.0.0.1',
    oldAppSecrets: [],
    workers: 1,
    drainSeconds: 0,
    metricsHost: '127.0.0.1',
    trustedProxies: [],
    providers: [],
    arePasswordsOff: false,
    egressAllowCidrs: [],
    pushHosts: [],
    securityContacts: [],
    quotas: {
      eventsPerMinute: 1_000_000,
      bytesPerDay: 50_000_000_000,
      channels: 100_000,
      webhooks: 500,
    },
    logLevel: 'info',
    retentionNeedsExport: false,
  }
  expect<Partial<Config>>(parseConfig({}, noFile)).toEqual(defaults)
  const blank = { PORT: '', HOST: ' ', DATABASE_URL_FILE: '' }
  expect<Partial<Config>>(parseConfig(blank, noFile)).toEqual(defaults)
})

test.each([
  ['PORT', ' 8080 ', 'port', 8080],
  ['WORKERS', '16', 'workers', 16],
  ['DRAIN_SECONDS', '300', 'drainSeconds', 300],
  ['PORT', '65535', 'port', 65535],
  ['HOST', '::', 'host', '::'],
  ['BASE_URL', 'HTTPS://A.example:443//', 'baseUrl', 'https://a.example'],
  ['DATABASE_URL', 'postgresql://h/d?ssl=true', 'databaseUrl', 'postgresql://h/d?ssl=true'],
  ['DATABASE_DIRECT_URL', 'postgres://u:p@h/d', 'databaseDirectUrl', 'postgres://u:p@h/d'],
  ['DATA_DIR', '/var/lib/tidings', 'dataDir', '/var/lib/tidings'],
  ['APP_SECRET', 'ab'.repeat(32), 'appSecret', Buffer.alloc(32, 0xab)],
  ['APP_SECRET', Buffer.alloc(32, 0xfb).toString('base64'), 'appSecret', Buffer.alloc(32, 0xfb)],
  ['APP_SECRET', Buffer.alloc(32, 0xfb).toString('base64url'), 'appSecret', Buffer.alloc(32, 0xfb)],
  [
    'APP_SECRET_OLD',
    `${'ab'.repeat(32)}, ${'cd'.repeat(32)}`,
    'oldAppSecrets',
    [Buffer.alloc(32, 0xab), Buffer.alloc(32, 0xcd)],
  ],
  ['EGRESS_ALLOW_CIDRS', '192.168.0.0/16', 'egressAllowCidrs', ['192.168.0.0/16']],
  [
    'EGRESS_PROXY',
    'http://user:p%40ss@proxy.test:3128',
    'egressProxy',
    { url: 'http://user:p%40ss@proxy.test:3128/', noProxy: '', resolvesNames: false },
  ],
  [
    'PUSH_HOSTS',
    'Push.example.com, 127.0.0.1:8443',
    'pushHosts',
    ['push.example.com', '127.0.0.1:8443'],
  ],
  ['VAPID_SUBJECT', 'https://a.example', 'vapidSubject', 'https://a.example'],
  [
    'SECURITY_CONTACT',
    'security@a.example, https://a.example/report,tel:+1-201-555-0123',
    'securityContacts',
    ['mailto:security@a.example', 'https://a.example/report', 'tel:+1-201-555-0123'],
  ],
  ['SOURCE_URL', 'https://git.example.com/t?b=c', 'sourceUrl', 'https://git.example.com/t?b=c'],
  ['METRICS_PORT', '9090', 'metricsPort', 9090],
  ['METRICS_HOST', '::1', 'metricsHost', '::1'],
  ['METRICS_TOKEN', 'x'.repeat(16), 'metricsToken', 'x'.repeat(16)],
  [
    'TRUSTED_PROXIES',
    '10.0.0.0/8, ::1,192.0.2.1',
    'trustedProxies',
    ['10.0.0.0/8', '::1/128', '192.0.2.1/32'],
  ],
  ['LOG_LEVEL', 'DEBUG', 'logLevel', 'debug'],
  ['LOG_FORMAT', 'JSON', 'logFormat', 'json'],
] as const)('%s=%p', (name, text, field, value) => {
  expect(parseConfig({ [name]: text }, noFile)[field]).toEqual(value as never)
  // The same value from a file that ends with a newline.
  const config = parseConfig({ [`${name}_FILE`]: '/run/secrets/x' }, path => {
    expect(path).toBe('/run/secrets/x')
    return `${text}\n`
  })
  expect(config[field]).toEqual(value as never)
})

test.each([
  ['PORT', '65536'],
  ['PORT', '80a'],
  ['PORT', '1e3'],
  ['HOST', 'a b'],
  ['HOST', 'http://a'],
  ['BASE_URL', 'a.example'],
  ['BASE_URL', 'ftp://a.example'],
  ['BASE_URL', 'https://a.example?b=c'],
  ['TRUSTED_PROXIES', 'localhost'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['LOG_LEVEL', 'loud'],
  ['LOG_FORMAT', 'logfmt'],
  ['PUSH_HOSTS', 'https://push.example.com'],
  ['PUSH_HOSTS', 'push.example.com/x'],
  ['VAPID_SUBJECT', 'https://localhost'],
  ['VAPID_SUBJECT', 'https://nas.local'],
  ['VAPID_SUBJECT', 'https://example.com/our contact'],
  ['SOURCE_URL', 'git.example.com/tidings'],
  ['SOURCE_URL', 'javascript:alert(1)'],
  ['SECURITY_CONTACT', 'nobody'],
  ['SECURITY_CONTACT', 'http://a.example'],
  ['SECURITY_CONTACT', 'https://a.example/ x'],
])('%s=%p is a problem whose message names the variable and describes the value', (name, text) => {
  const [problem, ...others] = listProblems({ [name]: text })
  expect(others).toEqual([])
  expect(problem).toStartWith(`${name} must be `)
  expect(problem).toEndWith(`. It is ${JSON.stringify(text)}.`)
})

test.each([
  [{ BASE_URL: 'https://a.example/tidings/' }, 'has the path /tidings', 'a host name of its own'],
  [{ PORT: 'tcp://10.0.0.1:80' }, 'Kubernetes sets it', 'enableServiceLinks: false'],
  [{ HOST: 'x86_64-conda-linux-gnu' }, 'Compilers of conda set it', 'Set HOST=127.0.0.1'],
])('%p is refused with its cause and a remedy', (env, cause, remedy) => {
  const [problem, ...others] = listProblems(env)
  expect([problem?.includes(cause), problem?.includes(remedy), others]).toEqual([true, true, []])
  expect(problem).toStartWith(Object.keys(env)[0]!)
})

const BACKUPS = { BACKUP_DIR: '/b', BACKUP_PASSPHRASE: 'violet-anchor-77' }

test.each([
  ['Europe/Berlin', 'Europe/Berlin'],
  [':Europe/Berlin', 'Europe/Berlin'],
  ['/usr/share/zoneinfo/Europe/Berlin', 'Europe/Berlin'],
  [':/usr/share/zoneinfo/posix/Europe/Berlin', 'Europe/Berlin'],
  [':/etc/localtime', 'Asia/Kathmandu'],
  ['UTC0', 'UTC'],
  ['CET-1CEST', undefined],
  ['+01:00', undefined],
  ['Nowhere/Town', undefined],
  ['/nowhere/zoneinfo/Europe/Berlin', undefined],
])('TZ=%s is %s', (text, zone) => {
  const found = toTimeZone(text, path => {
    if (path.startsWith('/nowhere')) throw new Error('ENOENT')
    return path.replace('/etc/localtime', '/usr/share/zoneinfo/Asia/Kathmandu')
  })
  expect(found).toBe(zone)
})

test('an unknown time zone is a problem only for a time of day', () => {
  const env = { TZ: 'CET-1CEST' }
  expect(listProblems(env)).toEqual([])
  expect(listProblems({ ...env, ...BACKUPS })).toEqual([
    'TZ must be the name of a time zone like Europe/Berlin, because BACKUP_AT is a time in it. It is "CET-1CEST".',
  ])
  expect(parseConfig({ ...BACKUPS, TZ: ':Europe/Berlin' }, noFile).timeZone).toBe('Europe/Berlin')
})

test('a setting of an earlier version says what replaces it', () => {
  for (const name of ['ARCHIVE_DIR', 'ARCHIVE_S3_URL', 'ARCHIVE_AT']) {
    expect(listProblems({ [name]: 'a' })).toEqual([
      expect.stringContaining(`${name} was removed in 0.4.0: run \`tidings export\` from a timer`),
    ])
  }
})

const COMPANY = {
  OIDC_COMPANY_ISSUER: 'https://login.example.com',
  OIDC_COMPANY_CLIENT_ID: 'tidings',
  OIDC_COMPANY_CLIENT_SECRET: 'a client secret',
}

test('OIDC variables become providers', () => {
  const env = { ...COMPANY, OIDC_COMPANY_LABEL: 'Acme', OIDC_COMPANY_TRUSTED: 'True' }
  expect(parseConfig(env, noFile).providers).toMatchObject([
    {
      ...{ name: 'company', label: 'Acme', issuer: 'https://login.example.com', isTrusted: true },
      ...{ scopes: 'openid email profile', groupsClaim: 'groups', clientId: 'tidings' },
    },
  ])
})

test.each<[string, Record<string, string>, string]>([
  ['a part', { OIDC_OTHER_ISSUER: 'https://a.example' }, 'OIDC_OTHER_CLIENT_ID is missing.'],
  ['TLS', { OIDC_COMPANY_ISSUER: 'http://a.example' }, 'It must begin with https://.'],
  ['a name', { OIDC_PROXY_LABEL: 'A' }, 'a name of at most 40 characters other than proxy'],
  ['a switch', { OIDC_COMPANY_TRUSTED: 'on' }, 'OIDC_COMPANY_TRUSTED must be true or false.'],
  ['a readable label', { OIDC_COMPANY_LABEL: 'moc\u202E.example' }, 'OIDC_COMPANY_LABEL must not'],
])('a provider without %s is a problem', (_, env, problem) => {
  expect(listProblems({ ...COMPANY, ...env }).join('\n')).toContain(problem)
})

test('all problems are reported at once, in one message', () => {
  const env = {
    PORT: 'x',
    METRICS_PORT: '99999',
    DATABASE_URL: 'mysql://a',
    LOG_LEVEL: 'loud',
    HOST: 'a',
    HOST_FILE: '/b',
    DATA_DIR_FILE: '/nowhere',
  }
  const problems = listProblems(env)
  expect(problems.map(problem => problem.split(' ')[0]).sort()).toEqual([
    'DATABASE_URL',
    'DATA_DIR_FILE',
    'HOST',
    'LOG_LEVEL',
    'METRICS_PORT',
    'PORT',
  ])
  expect(() => parseConfig(env, noFile)).toThrow(problems.join('\n  '))
})

test('design §5 OWNER_EMAIL and OWNER_PASSWORD are set together, also from files, and keep their white space', () => {
  const owner = { email: 'ada@example.com', password: ' violet tractor moon ' }
  const files: Record<string, string> = { '/e': 'Ada@Example.com\n', '/p': `${owner.password}\n` }
  expect(
    parseConfig({ OWNER_EMAIL: ' Ada@example.com', OWNER_PASSWORD: owner.password }, noFile).owner,
  ).toEqual(owner)
  expect(
    parseConfig({ OWNER_EMAIL_FILE: '/e', OWNER_PASSWORD_FILE: '/p' }, path => files[path]!).owner,
  ).toEqual(owner)
  expect(listProblems({ OWNER_EMAIL: owner.email })).toEqual([
    'OWNER_PASSWORD is missing. Set both OWNER_EMAIL and OWNER_PASSWORD, or neither.',
  ])
  expect(
    listProblems({ OWNER_PASSWORD: 'qwertyuiop123', OWNER_EMAIL: 'ada', PORT: 'x' }),
  ).toHaveLength(3)
})

test('an empty file is a problem, not a default', () => {
  expect(
    listProblems({ DATABASE_URL_FILE: '/empty', DATA_DIR_FILE: '/empty' }, () => ' \n'),
  ).toEqual([
    'DATABASE_URL_FILE must be the path of a file that is not empty.',
    'DATA_DIR_FILE must be the path of a file that is not empty. It is "/empty".',
  ])
})

test('scale §1 a URL of a pooler needs that of the database itself', () => {
  const DATABASE_URL = 'postgres://u:p@pooler/d?pgbouncer=true'
  expect(listProblems({ DATABASE_URL })).toEqual([
    'DATABASE_DIRECT_URL is missing. DATABASE_URL with pgbouncer=true needs it. Set it to Postgres itself.',
  ])
  expect(listProblems({ DATABASE_URL, DATABASE_DIRECT_URL: 'postgres://u:p@h/d' })).toEqual([])
  const name = 'DATABASE_DIRECT_URL'
  const urls = { DATABASE_URL: 'postgres://u:p@h/d?schema=app', [name]: 'postgres://u:p@h/d' }
  expect(listProblems(urls)).toEqual([`${name} needs the same schema as DATABASE_URL.`])
  expect(listProblems({ ...urls, [name]: 'postgres://u:p@i/d?schema=app' })).toEqual([])
})

describe('no problem shows a secret:', () => {
  test.each([
    ['a database of another kind', { DATABASE_URL: 'mysql://u:hunter2@h/d' }],
    ['replicas, which are gone', { DATABASE_READ_URL: 'postgres://u:hunter2@h/d' }],
    ['a database that is no URL', { DATABASE_URL: 'hunter2' }],
    ['a password with a %', { DATABASE_URL: 'postgres://u:hunter2%@h/d' }],
    ['a password with an @', { DATABASE_URL: 'postgres://u:p@hunter2@h/d' }],
    ['a URL in place of a file', { DATABASE_URL_FILE: 'postgres://u:hunter2@h/d' }],
    ['a file with nonsense', { DATABASE_URL_FILE: '/hunter2' }],
    ['a secret that is too short', { APP_SECRET: 'hunter2' }],
    ['a former secret among good ones', { APP_SECRET_OLD: `${'ab'.repeat(32)},hunter2` }],
    ['a URL in the wrong variable', { PORT: 'postgres://u:hunter2@h/d' }],
    ['a base URL with a user', { BASE_URL: 'https://u:hunter2@a.example' }],
    [
      'an owner with a short password',
      { OWNER_EMAIL: 'ada@example.com', OWNER_PASSWORD: 'hunter2' },
    ],
    [
      'a password in place of an address',
      { OWNER_EMAIL: 'hunter2', OWNER_PASSWORD: 'violet tractor moon' },
    ],
    ['a password without an address', { OWNER_PASSWORD: 'hunter2 violet tractor' }],
  ])('%s', (_, env) => {
    const readFile = (path: string) => (path === '/hunter2' ? 'hunter2' : noFile(path))
    const problems = listProblems(env, readFile)
    expect(problems).toHaveLength(1)
    expect(problems.join()).not.toContain('hunter2')
  })
})

test.each(['', '\n', '\r\n', '\r'])('secrets end before the line end %j', end => {
  const secret = 'violet tractor seventeen '
  const env = {
    ...{ BACKUP_DIR: `/backups${end}`, BACKUP_PASSPHRASE: secret + end },
    ...{ OWNER_EMAIL: `ada@example.com${end}`, OWNER_PASSWORD: secret + end },
  }
  const { backupSchedule, owner } = parseConfig(env, noFile)
  expect(backupSchedule).toMatchObject({ folder: '/backups', passphrase: secret })
  expect(owner).toMatchObject({ email: 'ada@example.com', password: secret })
})

test('BACKUP_DIR needs a passphrase, and has a time of day and a number of copies', () => {
  const passphrase = 'violet tractor seventeen'
  const env = { BACKUP_DIR: '/backups', BACKUP_PASSPHRASE: passphrase }
  const standard = { folder: '/backups', hour: 3, minute: 0, keep: 7, passphrase }
  expect(parseConfig(env, noFile).backupSchedule).toEqual(standard)
  const given = parseConfig({ ...env, BACKUP_AT: '23:59', BACKUP_KEEP: '1' }, noFile)
  expect(given.backupSchedule).toEqual({ ...standard, hour: 23, minute: 59, keep: 1 })
  expect(listProblems({ ...env, BACKUP_AT: '24:00', BACKUP_KEEP: '0' })).toEqual([
    'BACKUP_AT must be a time of day like 03:15. It is "24:00".',
    'BACKUP_KEEP must be a whole number from 1 to 1000. It is "0".',
  ])
  expect(listProblems({ BACKUP_DIR: '/backups' })).toEqual([
    'BACKUP_PASSPHRASE is missing. BACKUP_DIR needs it. Set both, or neither.',
  ])
  expect(listProblems({ ...env, BACKUP_PASSPHRASE: 'short' })).toEqual([
    'BACKUP_PASSPHRASE must be a text of at least 12 characters.',
  ])
})
