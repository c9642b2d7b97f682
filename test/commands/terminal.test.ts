import { expect, test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { APP_SECRET } from '../support/secret.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { findMain, spawnProgram } from '../support/servers/process.ts'
import { hasTool } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

test.skipIf(!hasTool('script'))(
  'a first start at a terminal is short text that ends with the link, and no key is printed',
  async () => {
    const databaseUrl = await cloneDatabase()
    const child = spawn('script', ['-qec', 'exec "$BUN" "$MAIN" serve', '/dev/null'], {
      env: {
        ...{ PATH: process.env['PATH'], BUN: process.execPath, MAIN: findMain() },
        ...{
          PORT: '0',
          TIDINGS_CONFIG: '/dev/null',
          BUN_OPTIONS: '--no-env-file',
          DATABASE_URL: databaseUrl,
          APP_SECRET: APP_SECRET.toString('base64'),
        },
      },
      stdio: 'pipe',
    })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const exited = once(child, 'exit')
    await until(() => /\/setup#[\w-]+\s*\n/.test(output) || child.exitCode !== null)
    const lines = stripVTControlCharacters(output)
      .split('\n')
      .map(line => line.trim())
      .filter(line => line !== '')
    expect(lines.at(-1)).toMatch(/^http:\/\/localhost:\d+\/setup#[\w-]+$/)
    expect(lines.length).toBeLessThan(12)
    expect(lines.filter(line => line.startsWith('{') || line.includes('tdg_'))).toEqual([])
    // Ctrl+C at the terminal.
    child.stdin.write('\u0003')
    expect(await exited).toEqual([0, null])

    await using sql = openSql(databaseUrl)
    const [found] = await sql`
      select (select count(*)::int from projects) as projects, (select count(*)::int from api_keys) as keys
    `
    expect<unknown>(found).toEqual({ projects: 1, keys: 0 })
  },
)

test('LOG_FORMAT=text in a pipe writes text', async () => {
  const env = { DATABASE_URL: await cloneDatabase(), LOG_FORMAT: 'text' }
  await using program = spawnProgram({ env })
  await until(() => program.logged('istening on').length > 0 || !program.isRunning())
  expect(program.logged('istening on')).toEqual([expect.not.stringMatching(/^\{/)])
})

test('a script of the checkout prints what the program prints, and nothing before it', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['run', 'tidings', 'version'], {
    cwd: resolve(import.meta.dirname, '../..'),
    encoding: 'utf8',
  })
  expect([stdout, stderr]).toEqual([expect.stringMatching(/^tidings \d\S* on .*\n$/), ''])
})
