import { expect, test } from 'bun:test'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { runProgram, startProgram } from '../../support/servers/process.ts'
import { createBrowser } from '../../support/worlds/browser.ts'
import { openSql } from '../../support/sql.ts'

const PASSWORDS = ['violet tractor seventeen', 'gravel monsoon nineteen', 'copper walnut eighty']
const TYPED_AS_EMAIL = 'my-secret-phrase@by.mistake'

test('reliability §11 passwords and tokens appear in no log line and in no row', async () => {
  const databaseUrl = await cloneDatabase()
  const env = { DATABASE_URL: databaseUrl, LOG_LEVEL: 'debug' }
  await using program = await startProgram({ env })
  const [first, second, third] = PASSWORDS as [string, string, string]
  const email = 'ada@example.com'
  const browser = createBrowser(program.url)
  const secrets = new Set([...PASSWORDS, TYPED_AS_EMAIL])
  const collect = () => browser.cookies.forEach(value => secrets.add(value))

  const setupToken = /\/setup#([\w-]+)/.exec(program.output())?.[1] ?? ''
  secrets.add(setupToken)
  const setup = { token: setupToken, name: 'Ada', email, password: first }
  expect((await browser.post('/api/setup', { ...setup, token: 'x' })).status).toBe(404)
  expect((await browser.post('/api/setup', setup)).status).toBe(201)
  collect()
  expect((await browser.signIn(TYPED_AS_EMAIL, first)).status).toBe(401)
  expect((await browser.signIn(email, third)).status).toBe(401)
  expect((await browser.signIn(email, first)).status).toBe(200)
  collect()
  await browser.post('/api/session/verify', { password: first })
  collect()
  const change = { currentPassword: first, newPassword: second }
  expect((await browser.put('/api/me/password', change)).status).toBe(200)
  collect()
  const reset = await runProgram({ args: ['owner', 'reset', '--email', email, '--json'], env })
  expect(reset.code).toBe(0)
  const token = String(JSON.parse(reset.output).url).split('#')[1] ?? ''
  secrets.add(token)
  expect((await browser.post('/api/reset', { token, password: third })).status).toBe(200)
  collect()
  expect((await browser.signIn(email, third)).status).toBe(200)
  collect()
  expect(secrets.size).toBeGreaterThanOrEqual(14)
  await program.kill('SIGTERM')

  const log = program.logged('"level"').join('\n')
  expect(log).toContain('/api/me/password')
  const sql = openSql(databaseUrl)
  try {
    const tables = await sql<{ name: string }[]>`
      select table_name as name
      from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE'
    `
    expect(tables.map(({ name }) => name)).toContain('audit_log')
    let text = ''
    for (const { name } of tables) {
      const [row] = await sql<[{ text: string | null }]>`
        select string_agg(t::text, ' ') as text from ${sql(name)} t
      `
      text += row.text ?? ''
    }
    expect(text).toContain(email)
    for (const secret of secrets) {
      expect(log).not.toContain(secret)
      expect(text).not.toContain(secret)
      expect(text).not.toContain(Buffer.from(secret).toString('hex'))
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
})
