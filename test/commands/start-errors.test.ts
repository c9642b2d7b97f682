import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { hasContainers } from '../support/containers.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { runProgram, startProgram } from '../support/servers/process.ts'
import { until } from '../support/until.ts'

const folder = makeFolder()
const file = join(folder, 'file')
writeFileSync(file, '')
symlinkSync('loop', join(folder, 'loop'))
mkdirSync(join(folder, 'closed'))
chmodSync(join(folder, 'closed'), 0o500)
afterAll(() => chmodSync(join(folder, 'closed'), 0o700))
const DATABASE_URL = await cloneDatabase()

/** The places of a start that ends, and the remedies that its only line names. */
const places: [DATA_DIR: string, remedy: string][] = [
  [file, 'Choose another path.'],
  [join(file, 'below'), 'Choose another path.'],
  [join(folder, 'loop'), 'Correct them.'],
  [join(folder, 'x'.repeat(300)), 'Choose a shorter one.'],
  [join(folder, 'a$b'), 'because the path contains $. Choose another DATA_DIR.'],
  [join(folder, 'a"b'), 'because the path contains ". Choose another DATA_DIR.'],
  [join(folder, 'a`b'), 'because the path contains `. Choose another DATA_DIR.'],
  [join(folder, 'a\\b'), 'because the path contains \\. Choose another DATA_DIR.'],
]
if (process.platform === 'linux') places.push(['/proc/data', 'correct the path.'])

test.each(places)('a start in %s says what to do', async (DATA_DIR, remedy) => {
  const { code, output } = await runProgram({ env: { DATA_DIR } })
  expect(code).toBe(1)
  expect(output).toContain(remedy)
  expect(output).not.toMatch(/\bE[A-Z]{3,}\b/)
})

// Root loses its rights there, so that it is refused like everybody else.
const AS_ANOTHER = ['unshare', '--user', '--map-user=4242', '--']

test.skipIf(!hasContainers).each(['serve', 'doctor', 'keys list'])(
  'as a user that may not use the folder, %s names the folder and a remedy',
  async command => {
    const DATA_DIR = join(folder, 'closed')
    const container = { enter: AS_ANOTHER }
    const { code, output } = await runProgram({
      args: command.split(' '),
      env: { DATA_DIR },
      container,
    })
    expect(code).toBe(1)
    expect(output).toMatch(/This user may not use .*closed|There is no installation in .*closed/)
    expect(output).not.toMatch(/\bEACCES\b/)
  },
)

test('a start with few file descriptors names the limit, and where to raise it', async () => {
  const enter = ['sh', '-c', 'ulimit -n 40; exec "$@"', 'sh']
  const { code, output } = await runProgram({ env: {}, container: { enter } })
  expect(code).toBe(1)
  expect(output).toContain('Too many files are open. Raise the limit: `ulimit -n')
})

test('a server without free file descriptors names the limit, and keeps its Postgres', async () => {
  const enter = ['sh', '-c', 'ulimit -n 128; exec "$@"', 'sh']
  await using program = await startProgram({ env: {}, container: { enter } })
  const sockets = Array.from({ length: 200 }, () =>
    connect(program.port, '127.0.0.1').on('error', () => {}),
  )
  await until(() => program.logged('Too many files are open. Raise the limit').length > 0)
  for (const socket of sockets) socket.destroy()
  await until(async () => {
    const answer = await fetch(`${program.url}/readyz`).catch(() => undefined)
    return answer?.status === 200
  })
  expect(program.logged('Postgres has ended')).toEqual([])
  expect(program.logged('Postgres had ended')).toEqual([])
  expect((await program.kill('SIGTERM')).code).toBe(0)
})

test.each(['192.0.2.1', 'no-such-host.invalid'])('HOST=%s says what to set', async HOST => {
  const { code, output } = await runProgram({ env: { HOST, DATABASE_URL } })
  expect(code).toBe(1)
  expect(output).toContain('Set HOST to one of its addresses')
})
