import { afterAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  WRONG_PASSWORD,
} from '../support/worlds/browser.ts'
import { newOrganization } from '../support/worlds/signed-in-account.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { runProgram, startProgram } from '../support/servers/process.ts'
import { withServer } from '../support/servers/server.ts'
import { makeFolder } from '../support/scratch.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'] })
const folder = makeFolder(0o700)
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs one `tidings owner` command to its end. */
async function owner(args: string[], env: Record<string, string> = {}) {
  const { code, output } = await runProgram({
    args: ['owner', ...args],
    env: { DATABASE_URL: server.databaseUrl, BASE_URL: 'https://tidings.example.com', ...env },
  })
  return { code, output, json: () => JSON.parse(output) as Record<string, string> }
}

function writePassword(text: string): string {
  const file = join(folder, crypto.randomUUID())
  writeFileSync(file, text)
  return file
}

test('design §5 owner create adds an operator who owns every organization, also with existing accounts', async () => {
  await newAccount(server)
  const { id } = await newOrganization(server)
  const file = writePassword(`${PASSWORD}\n`)
  const words = ['--email', 'Ada@Example.com', '--name', 'Ada Lovelace', '--password-file', file]
  const made = await owner(['create', ...words, '--json'])
  expect(made.code).toBe(0)
  expect(made.json()).toEqual({
    id: expect.stringMatching(/^per_/),
    email: 'ada@example.com',
    name: 'Ada Lovelace',
  })
  const { status, body } = await createBrowser(server.url).signIn('ada@example.com')
  expect(status).toBe(200)
  expect(body.data.person).toMatchObject({ name: 'Ada Lovelace', isOperator: true })
  const roles = body.data.organizations.map(({ role }: { role: string }) => role)
  expect(roles).toEqual(['owner', 'owner'])
  expect(body.data.organizations[1].id).toBe(id)

  const again = await owner(['create', '--email', 'ada@example.com'])
  expect([again.code, again.output]).toEqual([1, expect.stringContaining('tidings owner reset')])
})

test('design §5 owner create without a password prints a link to choose one', async () => {
  const { code, output } = await owner(['create', '--email', 'grace@example.com'])
  expect(code).toBe(0)
  const token = /https:\/\/tidings\.example\.com\/reset#([\w-]{43})\n/.exec(output)?.[1]
  const browser = createBrowser(server.url)
  expect((await browser.post('/api/reset', { token, password: PASSWORD })).status).toBe(200)
  expect((await browser.signIn('grace@example.com')).body.data.person.name).toBe('grace')
})

test('design §5 owner reset prints a link that works during a sign-in delay', async () => {
  const account = await newAccount(server)
  const address = newAddress()
  await createBrowser(server.url).signIn(account.email, WRONG_PASSWORD, address)
  await server.sql`update sign_in_failures set failures = 15`
  const browser = createBrowser(server.url)
  expect((await browser.signIn(account.email, PASSWORD, address)).status).toBe(429)
  const link = (await owner(['reset', '--email', account.email, '--json'])).json()
  expect(link).toEqual({
    email: account.email,
    url: expect.stringMatching(/^https:\/\/tidings\.example\.com\/reset#[\w-]{43}$/),
    expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  // The delay ends at once: the old password works without the link.
  expect((await browser.signIn(account.email, PASSWORD, address)).status).toBe(200)
  const token = link['url']?.split('#')[1]
  const password = 'gravel monsoon nineteen'
  expect((await browser.post('/api/reset', { token, password })).status).toBe(200)
  expect((await browser.signIn(account.email, password)).status).toBe(200)
})

test('design §5 before the first start owner create replaces the setup link', async () => {
  const DATABASE_URL = await cloneDatabase()
  const file = writePassword(PASSWORD)
  const args = ['create', '--email', 'ada@example.com', '--password-file', file]
  expect((await owner(args, { DATABASE_URL })).code).toBe(0)
  await using program = await startProgram({ env: { DATABASE_URL } })
  expect(program.output()).not.toContain('/setup#')
  const { body } = await createBrowser(program.url).signIn('ada@example.com')
  expect(body.data.organizations).toMatchObject([{ role: 'owner' }])
})

test('design §5 serve prints the setup link below the curl line, on the terminal and not in the log', async () => {
  const DATABASE_URL = await cloneDatabase()
  await using program = await startProgram({ env: { DATABASE_URL, LOG_LEVEL: 'debug' } })
  const output = program.output()
  const link = new RegExp(`\\n  http://localhost:${program.port}/setup#([\\w-]{22})\\n`)
  expect(output.indexOf('/setup#')).toBeGreaterThan(output.indexOf('curl '))
  const token = link.exec(output)?.[1] ?? ''
  expect(program.logged('"level"').some(line => line.includes(token))).toBe(false)
  const doctor = await runProgram({
    args: ['doctor'],
    env: { DATABASE_URL, BASE_URL: 'http://a.example' },
  })
  expect(doctor.code).toBe(0)
  expect(doctor.output).toContain('warning  owner: Nobody can sign in yet')
  expect(doctor.output).toContain('warning  BASE_URL: http://a.example is not encrypted')
})

test.each([
  [['create', '--email', 'ada'], '--email must be an e-mail address'],
  [['create', '--email', 'a@b.c', '--name', ' '], '--name must have'],
  [['create', '--email', 'a@b.c', '--password', PASSWORD], 'Unknown option --password'],
  [['create', '--email', 'a@b.c', '--password-file', '/nowhere'], '--password-file must be'],
  [['create'], 'email'],
  [['reset'], 'email'],
])('owner %p exits with 2 and says why', async (args, text) => {
  const { code, output } = await owner(args)
  expect([code, output]).toEqual([2, expect.stringContaining(text)])
  expect(output).not.toContain(PASSWORD)
})

test('owner explains a refused password without printing it, and reports unknown accounts', async () => {
  const file = writePassword('qwertyuiop123')
  const unfit = await owner(['create', '--email', 'a@b.c', '--password-file', file])
  expect([unfit.code, unfit.output]).toEqual([2, expect.stringContaining('commonly used password')])
  expect(unfit.output).not.toContain('qwertyuiop')
  const unknown = await owner(['reset', '--email', 'nobody@example.com'])
  expect([unknown.code, unknown.output]).toEqual([1, expect.stringContaining('No account has')])
})
