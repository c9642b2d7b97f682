import { describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { hashPassword } from '../../src/access/sign-in/credentials.ts'
import { SNIPPETS } from '../../src/dashboard/app/first-run/snippets.ts'
import { parseId } from '../../src/base/ids.ts'
import { ISSUE_CODES } from '../../src/http/rules.ts'
import { FAILURE_CODES } from '../../src/base/errors.ts'
import { PASSWORD } from '../support/worlds/browser.ts'
import { listCodeBlocks, listMarkdown, ROOT, type CodeBlock } from '../support/docs.ts'
import { openRaw, sendRaw, toRequest } from '../support/clients/raw-http.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newManagementToken } from '../support/worlds/management-token.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { makeFolder } from '../support/scratch.ts'
import { findMain } from '../support/servers/process.ts'
import { withServer } from '../support/servers/server.ts'
import { hasTool } from '../support/tools.ts'
import { scaled, until } from '../support/until.ts'

/** Pages whose blocks must run unchanged. Readers fill in blocks with an ellipsis. */
const RUNNABLE = [
  'sending-events',
  'alerts',
  'inbound-hooks',
  'webhooks',
  'live-feed',
  'management-api',
  'push',
].map(name => `docs/${name}.md`)
const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, yes').toString('base64')}`
/** Runs a program whose packages are installed, and only parses any other. */
const PYTHON = `
import ast, importlib.util, sys
source = open(sys.argv[1]).read()
names = [name for node in ast.walk(ast.parse(source)) for name in (
    [alias.name for alias in node.names] if isinstance(node, ast.Import)
    else [node.module] if isinstance(node, ast.ImportFrom) else [])]
if all(importlib.util.find_spec(name.split(".")[0]) for name in names):
    exec(compile(source, sys.argv[1], "exec"), {"__name__": "__main__"})
`

const server = withServer()
const HASH = hashPassword(PASSWORD, 'test')

interface Reader {
  env: Record<string, string | undefined>
  /** The folder in which the blocks run. */
  cwd: string
}

/** Returns a reader who owns a project, with the variables and files that the pages expect. */
async function newReader(): Promise<Reader> {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  await server.sql`
    update accounts set password_hash = ${await HASH} where id = ${owner.uuid}
  `
  const { text, body } = await owner.post(`/api/projects/${organization.project.id}/webhooks`, {
    url: 'https://example.com/hooks',
  })
  if (body.data === undefined) throw new Error(text)
  const hook = await owner.post(`/api/projects/${organization.project.id}/hooks`, {
    ...{ name: 'Shop', preset: 'generic', channel: 'ops' },
  })
  const { token } = await createKey(server.sql, {
    projectId: organization.project.uuid,
    name: 'docs',
  })
  const management = await newManagementToken(server, {
    accountId: owner.uuid,
    organizationId: organization.uuid,
  })
  const cwd = makeFolder()
  mkdirSync(join(cwd, 'node_modules'))
  const packages = join(ROOT, 'node_modules/standardwebhooks')
  symlinkSync(packages, join(cwd, 'node_modules/standardwebhooks'))
  const command = join(cwd, 'tidings')
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${findMain()}' "$@"\n`)
  chmodSync(command, 0o755)
  const [name, value] = owner.cookie.split('=')
  const { hostname } = new URL(server.url)
  writeFileSync(join(cwd, 'cookies.txt'), `${hostname}\tFALSE\t/\tFALSE\t0\t${name}\t${value}\n`)
  return {
    cwd,
    env: {
      ...process.env,
      PATH: `${cwd}:${process.env['PATH']}`,
      TIDINGS_URL: server.url,
      TIDINGS_API_KEY: token,
      TIDINGS_TOKEN: management.secret,
      TIDINGS_EMAIL: owner.email,
      TIDINGS_PASSWORD: PASSWORD,
      WEBHOOK_SECRET: SECRET,
      PROJECT: organization.project.id,
      ORGANIZATION: organization.id,
      WEBHOOK: body.data.id,
      HOOK: hook.body.data.url,
    },
  }
}

/** Runs a command and returns its output. Throws if it fails. */
async function run({ cwd, env }: Reader, command: string, args: readonly string[]) {
  const child = spawn(command, args, { cwd, env: env as NodeJS.ProcessEnv, stdio: 'pipe' })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk))
  child.stdin.end()
  const [status] = (await once(child, 'close')) as [number]
  if (status !== 0)
    throw new Error(`${command} ended with ${status}:
${printed}`)
  return printed
}

/** Writes a block to a file of the reader; returns the name. */
function write({ cwd }: Reader, { place, language, text }: CodeBlock, after = ''): string {
  const endings: Record<string, string> = { python: 'py', js: 'mjs' }
  const name = `${place.replace(/\W/g, '-')}.${endings[language] ?? language}`
  writeFileSync(join(cwd, name), text + after)
  return name
}

describe.each(RUNNABLE)('%s runs unchanged', path => {
  const blocks = listCodeBlocks(path).filter(({ isTemplate }) => !isTemplate)
  const shell = blocks.filter(({ language }) => language === 'sh')
  const scripts = blocks.filter(({ language }) => ['ts', 'js'].includes(language))
  const python = blocks.filter(({ language }) => language === 'python')

  test.skipIf(!hasTool('curl') || !hasTool('jq') || !hasTool('apprise'))(
    'its shell blocks run one after the other',
    async () => {
      const reader = await newReader()
      const script = shell.map(({ place, text }) => `echo '--- ${place}' >&2\n${text}`).join('\n')
      // Variables of one block are known in the next, as in a reader's shell.
      await run(reader, 'sh', ['-eu', '-c', script])
    },
  )

  // The test of the client's package runs the blocks that import it.
  test.each(scripts.filter(({ text }) => !/WebSocket|@tidings\/client/.test(text)))(
    '$place in JavaScript',
    async block => {
      const reader = await newReader()
      await run(reader, process.execPath, [write(reader, block)])
    },
  )

  test.skipIf(!hasTool('python3')).each(python)('$place in Python', async block => {
    const reader = await newReader()
    await run(reader, 'python3', ['-c', PYTHON, write(reader, block)])
  })
})

test.skipIf(!hasTool('curl'))('docs/get-started.md sends its first event', async () => {
  const [request, ...others] = listCodeBlocks('docs/get-started.md').filter(
    ({ language, text }) => language === 'sh' && text.includes('curl'),
  )
  expect(others).toEqual([])
  const printed = await run(await newReader(), 'sh', ['-eu', '-c', request?.text ?? ''])
  expect(printed).toContain('"title":"New payment"')
})

/** How to run a program of the quick start, by language. */
const RUNNERS: Record<string, { file: string; command: readonly string[] }> = {
  curl: { file: 'first.sh', command: ['sh', '-eu'] },
  JavaScript: { file: 'first.mjs', command: [process.execPath] },
  Python: { file: 'first.py', command: ['python3'] },
  Ruby: { file: 'first.rb', command: ['ruby'] },
  PHP: { file: 'first.php', command: ['php'] },
}

describe.each(SNIPPETS.map(snippet => [snippet.name, snippet] as const))(
  'the program of the quick start in %s',
  (name, { toCode }) => {
    // To compile the packages of Go takes half a minute, so only its syntax is checked.
    const { file, command } = RUNNERS[name] ?? { file: 'first.go', command: ['gofmt', '-e'] }
    test.skipIf(!hasTool(command[0]!))('sends the event', async () => {
      const reader = await newReader()
      const { TIDINGS_URL: url = '', TIDINGS_API_KEY: key = '', PROJECT: project } = reader.env
      writeFileSync(join(reader.cwd, file), toCode(url, key))
      const [program = '', ...args] = [...command, file]
      await run(reader, program, args)
      if (name === 'Go') return
      const [event] = await server.sql`
      select e.title, e.icon, c.name
      from events e join channels c on c.id = e.channel_id
      where e.project_id = ${parseId('prj', project ?? '') ?? null}
    `
      expect(event).toEqual({ title: 'It works', icon: '🎉', name: 'hello' })
    })
  },
)

test('the client of the live feed prints events', async () => {
  const reader = await newReader()
  const block = listCodeBlocks('docs/live-feed.md').find(({ language }) => language === 'ts')
  const sent = await fetch(`${server.url}/v1/channels/payments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${reader.env['TIDINGS_API_KEY']}` },
    body: 'New payment',
  })
  expect(sent.status).toBe(201)
  const child = spawn(process.execPath, [write(reader, block!)], {
    cwd: reader.cwd,
    env: reader.env as Record<string, string>,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  try {
    let printed = ''
    child.stderr.on('data', (chunk: Buffer) => (printed += chunk))
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        printed += chunk
        if (printed.includes('1 payments New payment')) resolve()
      })
      child.on('exit', () => reject(new Error(printed)))
    })
  } finally {
    child.kill('SIGKILL')
  }
})

describe('the receivers of webhooks accept genuine requests, and refuse hostile ones', () => {
  const body = '{"type":"event.created","data":{"title":"New payment 💰"}}'
  const now = Math.floor(Date.now() / 1000)
  const signature = new Webhook(SECRET).sign('msg_1', new Date(now * 1000), body)
  const genuine = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(now),
    'webhook-signature': `v1,AAAA ${signature}`,
  }
  type Request = { headers: Record<string, string>; body: string }
  const without = (name: string): Request => ({
    headers: Object.fromEntries(Object.entries(genuine).filter(([one]) => one !== name)),
    body,
  })
  const having = (value: string) => (name: string) => ({
    headers: { ...genuine, [`webhook-${name}`]: value },
    body,
  })
  const HOSTILE: Request[] = [
    { headers: genuine, body: body.replace('New', 'Old') },
    { headers: genuine, body: '' },
    { headers: {}, body },
    ...Object.keys(genuine).map(without),
    ...[
      '',
      'x',
      '-1',
      '1e999',
      'NaN',
      '9'.repeat(20),
      '9'.repeat(5_000),
      `${now - 301}`,
      `x${now}`,
    ].map(value => having(value)('timestamp')),
    ...[
      '',
      ' ',
      ',',
      'v1',
      'v1,',
      'v1,ñ',
      'v1,é'.repeat(44),
      signature.slice(3),
      `v2${signature.slice(2)}`,
    ].map(value => having(value)('signature')),
    ...['', 'ñ', 'msg_2', '9'.repeat(5_000)].map(value => having(value)('id')),
  ]
  const cases: Request[] = [{ headers: genuine, body }, ...HOSTILE]
  const json = JSON.stringify(JSON.stringify(cases))
  const expected = JSON.stringify(cases.map((_, nth) => nth === 0))
  const blocks = listCodeBlocks('docs/webhooks.md')
  const find = (language: string, name: string) =>
    blocks.find(block => block.language === language && block.text.includes(name))!
  const toExpected = (isTrue: string, isFalse: string, between = ',') =>
    cases.map((_, nth) => (nth === 0 ? isTrue : isFalse)).join(between)

  const RUNTIMES = [process.execPath, 'node', 'deno'].filter(
    command => command === process.execPath || hasTool(command),
  )

  test.each(RUNTIMES)('js without a package, on %s', async runtime => {
    const reader = await newReader()
    const after = `\nconsole.log(JSON.stringify(JSON.parse(${json}).map(one => isGenuine('${SECRET}', one.headers, one.body))))`
    const file = write(reader, find('js', 'isGenuine'), after)
    expect(
      await run(reader, runtime, [...(runtime === 'deno' ? ['run', '-A'] : []), file]),
    ).toContain(expected)
  })

  test('ts with standardwebhooks', async () => {
    const reader = await newReader()
    const after = `
const results: boolean[] = []
for (const one of JSON.parse(${json})) {
  const request = { text: async () => one.body, headers: Object.entries(one.headers) }
  results.push((await receive(request as unknown as Request)).status === 204)
}
console.log(JSON.stringify(results))`
    const file = write(reader, find('ts', 'standardwebhooks'), after)
    expect(await run(reader, process.execPath, [file])).toContain(expected)
  })

  test.each(RUNTIMES.filter(runtime => runtime !== 'deno'))(
    'js in docs/get-started.md, on %s',
    async runtime => {
      const reader = await newReader()
      const block = listCodeBlocks('docs/get-started.md').find(one => one.language === 'js')!
      // A port of its own, which it prints.
      const text = block.text.replace(
        "4000, '127.0.0.1')",
        "0, '127.0.0.1', function () { console.log('port', this.address().port) })",
      )
      const child = spawn(runtime, [write(reader, { ...block, text })], {
        cwd: reader.cwd,
        env: reader.env as Record<string, string>,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      try {
        let printed = ''
        for (const stream of [child.stdout, child.stderr])
          stream.on('data', (chunk: Buffer) => (printed += chunk))
        await until(() => /port \d+/.test(printed))
        const url = `http://127.0.0.1:${/port (\d+)/.exec(printed)?.[1]}/`
        const head = toRequest('POST / HTTP/1.1', ['Host: a', 'Content-Length: 100'])
        {
          using torn = openRaw(url)
          await torn.flush(Buffer.from(`${head}half`))
        }
        const statuses: number[] = []
        for (const { headers, body: sent } of cases) {
          const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
          const length = `Content-Length: ${Buffer.byteLength(sent)}`
          const answer = await sendRaw(
            url,
            toRequest('POST / HTTP/1.1', ['Host: a', length, ...lines]) + sent,
          )
          statuses.push(answer?.status ?? 0)
        }
        expect(statuses, printed).toEqual(cases.map((_, nth) => (nth === 0 ? 204 : 401)))
        expect(child.exitCode, printed).toBeNull()
      } finally {
        child.kill('SIGKILL')
      }
    },
  )

  test.skipIf(!hasTool('python3'))('python', async () => {
    const reader = await newReader()
    const after = `\nimport json\nprint([is_genuine("${SECRET}", one["headers"], one["body"].encode()) for one in json.loads(${json})])`
    const file = write(reader, find('python', 'is_genuine'), after)
    expect(await run(reader, 'python3', [file])).toContain(`[${toExpected('True', 'False', ', ')}]`)
  })

  test.skipIf(!hasTool('ruby'))('ruby', async () => {
    const reader = await newReader()
    writeFileSync(join(reader.cwd, 'cases.json'), JSON.stringify(cases))
    const after = `\nrequire "json"\nputs JSON.parse(File.read("cases.json", encoding: "UTF-8")).map { |one| genuine?("${SECRET}", one["headers"], one["body"]) }.join(",")`
    const file = write(reader, find('ruby', 'genuine?'), after)
    expect(await run(reader, 'ruby', [file])).toContain(toExpected('true', 'false'))
  })

  test.skipIf(!hasTool('php'))('php', async () => {
    const reader = await newReader()
    writeFileSync(join(reader.cwd, 'cases.json'), JSON.stringify(cases))
    // Frameworks turn each warning into an exception.
    const after = `
set_error_handler(fn (int $level, string $message) => throw new ErrorException($message));
echo json_encode(array_map(fn ($one) => isGenuine('${SECRET}', $one['headers'], $one['body']), json_decode(file_get_contents('cases.json'), true)));`
    const file = write(reader, find('php', 'isGenuine'), after)
    expect(await run(reader, 'php', [file])).toContain(expected)
  })

  // Without net/http, which takes half a minute to compile.
  test.skipIf(!hasTool('go'))(
    'go',
    async () => {
      const reader = await newReader()
      const block = find('go', 'IsGenuine')
      const text = block.text
        .replace('package hooks', 'package main')
        .replace('\t"net/http"\n', '')
        .replace('http.Header', 'header')
      const literals = cases.map(
        one =>
          `{header{${Object.entries(one.headers)
            .map(pair => pair.map(part => JSON.stringify(part)).join(': '))
            .join(', ')}}, ${JSON.stringify(one.body)}},\n`,
      )
      const after = `
type header map[string]string

func (h header) Get(name string) string { return h[name] }

func main() {
	for _, one := range []struct {
		headers header
		body    string
	}{
${literals.join('')}	} {
		fmt.Print(IsGenuine("${SECRET}", one.headers, []byte(one.body)), ",")
	}
}
`
      const file = write(reader, { ...block, text }, after)
      reader.env['GOCACHE'] = join(reader.cwd, 'cache')
      expect(await run(reader, 'go', ['run', file])).toContain(toExpected('true', 'false'))
    },
    scaled(120_000),
  )
})

/** Tools that check a program without running it, by language. Their argument is a file name. */
const CHECKS: Record<string, readonly string[]> = {
  sh: ['sh', '-n'],
  python: ['python3', '-m', 'py_compile'],
  go: ['gofmt', '-e'],
  ruby: ['ruby', '-c'],
  php: ['php', '-l'],
}

const pages = listMarkdown().filter(path => listCodeBlocks(path).length > 0)

describe.each(pages)('the blocks of %s', path => {
  const blocks = listCodeBlocks(path)
  test('have no syntax errors', async () => {
    const reader: Reader = { cwd: makeFolder(), env: process.env }
    for (const block of blocks) {
      const { language, text, place, isTemplate } = block
      const [command, ...args] = CHECKS[language] ?? []
      if (command !== undefined && hasTool(command))
        await run(reader, command, [...args, write(reader, block)])
      if (language === 'json' && !isTemplate) expect(() => JSON.parse(text), place).not.toThrow()
      if (language === 'ts' || language === 'js')
        expect(() => new Bun.Transpiler({ loader: 'ts' }).transformSync(text), place).not.toThrow()
    }
  })
})

test('docs/sending-events.md lists every failure code', async () => {
  const page = await Bun.file(join(ROOT, 'docs/sending-events.md')).text()
  for (const code of [...ISSUE_CODES, ...FAILURE_CODES]) expect(page).toContain(`\`${code}\``)
})
