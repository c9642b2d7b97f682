import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/scratch.ts'
import { startProgram } from '../support/servers/process.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { openSql } from '../support/sql.ts'
import { hasTool } from '../support/tools.ts'
import { newProject } from '../support/worlds/project.ts'

interface Action {
  inputs: Record<string, { default?: string }>
  runs: { steps: [{ env: Record<string, string>; run: string }] }
}

const { inputs, runs } = Bun.YAML.parse(
  readFileSync(join(import.meta.dirname, '../../clients/action/action.yml'), 'utf8'),
) as Action
const [step] = runs.steps

/** Runs the step as GitHub does. `given` has inputs, and the status of the job. */
function runStep(given: Record<string, string>, path = '') {
  const cwd = makeFolder()
  const values: Record<string, string> = { 'job.status': given['status'] ?? 'success' }
  for (const [name, { default: usual = '' }] of Object.entries(inputs))
    values[`inputs.${name}`] = given[name] ?? usual
  const env = Object.entries(step.env).map(([name, text]) => [
    name,
    text.replace(/\$\{\{ ([\w.-]+) \}\}/g, (_, key: string) => values[key]!),
  ])
  const { status, stdout } = spawnSync(
    'bash',
    ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run],
    {
      cwd,
      encoding: 'utf8',
      env: {
        ...Object.fromEntries(env),
        PATH: path + process.env['PATH'],
        GITHUB_OUTPUT: join(cwd, 'output'),
        GITHUB_SERVER_URL: 'https://github.com',
        GITHUB_REPOSITORY: 'ada/shop',
        GITHUB_WORKFLOW: 'Deploy',
        GITHUB_RUN_ID: '42',
        GITHUB_REF: 'refs/heads/main',
      },
    },
  )
  return { status, stdout, cwd }
}

test.skipIf(!hasTool('curl') || !hasTool('jq'))(
  'the action sends what it is given, and what the run says',
  async () => {
    const databaseUrl = await cloneDatabase()
    const sql = openSql(databaseUrl, { max: 2 })
    await using program = await startProgram({ env: { DATABASE_URL: databaseUrl } })
    const { key, get } = await newProject({ sql, url: program.url })
    const to = { key, url: `${program.url}/` }
    const title = `"; touch pwned; $(touch pwned) \`touch pwned\` %0A::x:: '💾\\n`

    const sent = runStep({ ...to, title, description: 'a\nb', channel: 'ops', level: 'low' })
    expect(sent).toMatchObject({ status: 0, stdout: '' })
    expect(existsSync(join(sent.cwd, 'pwned'))).toBeFalse()
    const [, id] = readFileSync(join(sent.cwd, 'output'), 'utf8').split(/[=\n]/)
    expect((await get(`/v1/events/${id}`)).body.data).toMatchObject({
      ...{ title, description: 'a\nb', channelName: 'ops', level: 'low', source: 'github' },
      ...{ url: 'https://github.com/ada/shop/actions/runs/42' },
      metadata: { repository: 'ada/shop', ref: 'refs/heads/main' },
    })

    // Loses the first response.
    const lossy = makeFolder()
    const curl = `"$(PATH=\${PATH#*:}; command -v curl)"`
    writeFileSync(
      join(lossy, 'curl'),
      `#!/bin/sh
test -e '${lossy}/used' && exec ${curl} "$@"
${curl} "$@" >'${lossy}/used'
printf '\\n000'
exit 56
`,
      { mode: 0o755 },
    )
    const again = { ...to, status: 'failure', thread: 'deploy' }
    expect(runStep(again, `${lossy}:`).status).toBe(0)
    expect(readFileSync(join(lossy, 'used'), 'utf8')).toContain('201')
    const { items } = (await get('/v1/events?threads=all')).body.data
    expect(items).toHaveLength(2)
    expect(items[0]).toMatchObject({
      ...{ title: 'Deploy: failure', channelName: 'ci', level: 'high' },
      ...{ thread: 'deploy', state: 'failed' },
    })

    const refused = runStep({ ...to, title: 'x'.repeat(501) })
    expect(refused.status).toBe(1)
    expect(refused.stdout).toMatch(/^::error title=Tidings::.*HTTP 400 .*title: .*\n$/)
    await sql.end({ timeout: 1 })
  },
)
