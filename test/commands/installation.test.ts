import { expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/scratch.ts'
import { APP_SECRET } from '../support/secret.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import { runProgram, startProgram } from '../support/servers/process.ts'

const BACKUP = { BACKUP_PASSPHRASE: 'a long passphrase' }

test('no command but serve creates an installation', async () => {
  const folder = makeFolder()
  const missing = join(folder, 'missing')
  const commands = [
    ['keys', 'create', '--data-dir', missing],
    ['owner', 'create', '--email', 'ada@example.com', '--data-dir', missing],
    ['migrate', '--data-dir', missing],
    ['doctor', '--data-dir', missing],
    ['backup', join(folder, 'file'), '--data-dir', missing],
  ]
  const ended = await Promise.all([
    ...commands.map(args => runProgram({ args, env: BACKUP })),
    runProgram({ args: ['restore', '/dev/null'], env: BACKUP, bare: { cwd: folder } }),
  ])
  for (const { code, output } of ended) {
    expect([output, code]).toEqual([expect.stringContaining('There is no installation in '), 1])
    expect(output).toContain('Using the installation in ')
    expect(output).toContain('`tidings serve` creates a new one.')
  }
  expect(readdirSync(folder)).toEqual([])
})

test('an empty database is no installation either', async () => {
  const env = { ...BACKUP, DATABASE_URL: await createEmptyDatabase() }
  const file = join(makeFolder(), 'file')
  const ended = await Promise.all(
    [
      ['keys', 'create'],
      ['backup', file],
    ].map(args => runProgram({ args, env })),
  )
  for (const { code, output } of ended) {
    expect([output, code]).toEqual([expect.stringContaining('it is empty'), 1])
  }
  expect(existsSync(file)).toBe(false)
})

test('server and commands share a settings file, and say that they use it', async () => {
  const folder = makeFolder()
  const file = join(folder, 'tidings.toml')
  const databaseUrl = await cloneDatabase()
  const secret = APP_SECRET.toString('base64')
  writeFileSync(
    file,
    `database_url = '${databaseUrl}'\napp_secret = '${secret}'\ndata_dir = 'data'\nlog_level = 'debug'`,
    { mode: 0o600 },
  )
  const env = { TIDINGS_CONFIG: file }
  await using program = await startProgram({ env })
  const name = new URL(databaseUrl).pathname.slice(1)
  const line = `Using the database ${name} at /`
  expect(program.output()).toContain(line)
  const [listed, made] = await Promise.all([
    runProgram({ args: ['keys', 'list'], env }),
    runProgram({ args: ['keys', 'create', '--json'], env }),
  ])
  expect(listed.output).toStartWith(line)
  expect(listed.output).toContain(`(database_url in ${file}).\n`)
  expect(listed.output).toContain('First key')
  // One JSON value, without the line.
  const { key } = JSON.parse(made.output) as { key: string }
  const me = await fetch(`${program.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } })
  expect(me.status).toBe(200)
  expect(program.logged('"level":"DEBUG"')).not.toEqual([])
})
