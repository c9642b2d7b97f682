import { afterAll, expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openSql } from './support/sql.ts'
import { cloneDatabase } from './support/servers/postgres.ts'
import { startProgram, type Program } from './support/servers/process.ts'
import { hasTool } from './support/tools.ts'
import { createKey } from './support/worlds/keys.ts'
import { createRequests } from './support/worlds/project.ts'
import { newTenant } from './support/worlds/tenant.ts'
import { SCOPES } from '../src/access/keys/schema.ts'

const CLIENTS = join(import.meta.dirname, '../clients')
const run = promisify(execFile)

/** The same story in each language. It prints one line of JSON for each step. */
const STORIES: [tool: string, words: string[]][] = [
  [
    'python3',
    [
      '-c',
      `import json, sys
sys.path.insert(0, "${CLIENTS}/python")
sys.dont_write_bytecode = True
from tidings import Tidings, TidingsError
tidings = Tidings(retry_seconds=300)
id = tidings.ask("Deploy?", "deploys", {"no": "Abort", "yes": "Deploy"}, expires_in=600, idempotency_key="1")["id"]
answer = tidings.wait_for_answer(id)
print(json.dumps([tidings.wait_for_answer(id, timeout=0) == answer, answer["state"], answer["action"]]))
for n in range(50):
    tidings.send(f"Zürich {n}", "ops", level="high", metadata={"n": n})
print(json.dumps(tidings.identify("u1", aliases=["a@b.c"])["aliases"]["created"]))
for path, body in [("/v1/events/none", None), ("/v1/events", {"title": ""})]:
    try: tidings.request("POST" if body else "GET", path, body)
    except TidingsError as error:
        print(json.dumps([error.status, error.code, len(error.request_id), len(error.details), str(error)]))
try: Tidings(api_key="secret\\n").send("t", "c")
except ValueError as error: assert "secret" not in str(error)
try: Tidings(url="http://127.0.0.1:1", retry_seconds=1).send("t", "c")
except TidingsError as error: print(json.dumps([error.status, str(error)[:30]]))
`,
    ],
  ],
  [
    'ruby',
    [
      '-e',
      `require "${CLIENTS}/ruby/tidings"
tidings = Tidings.new(retry_seconds: 300)
id = tidings.ask("Deploy?", "deploys", { no: "Abort", yes: "Deploy" }, expires_in: 600, idempotency_key: "1")["id"]
answer = tidings.wait_for_answer(id)
puts JSON.generate([tidings.wait_for_answer(id, timeout: 0) == answer, answer["state"], answer["action"]])
50.times { |n| tidings.send("Zürich #{n}", "ops", level: "high", metadata: { n: n }) }
puts JSON.generate(tidings.identify("u1", aliases: ["a@b.c"])["aliases"]["created"])
[["/v1/events/none", nil], ["/v1/events", { title: "" }]].each do |path, body|
  tidings.request(body ? "POST" : "GET", path, body)
rescue Tidings::Error => error
  puts JSON.generate([error.status, error.code, error.request_id.size, error.details.size, error.message])
end
begin
  Tidings.new(url: "http://127.0.0.1:1", retry_seconds: 1).send("t", "c")
rescue Tidings::Error => error
  puts JSON.generate([error.status, error.message[0, 30]])
end
`,
    ],
  ],
  [
    'php',
    [
      '-r',
      `require "${CLIENTS}/php/tidings.php";
use Tidings\\{Tidings, TidingsException};
$tidings = new Tidings(retrySeconds: 300);
$id = $tidings->ask('Deploy?', 'deploys', ['no' => 'Abort', 'yes' => 'Deploy'], expiresIn: 600, idempotencyKey: '1', metadata: [])['id'];
$answer = $tidings->waitForAnswer($id);
echo json_encode([$tidings->waitForAnswer($id, timeout: 0) === $answer, $answer['state'], $answer['action']]), "\n";
foreach (range(0, 49) as $n) $tidings->send("Zürich $n", 'ops', level: 'high', metadata: ['n' => $n]);
$print = fn ($value) => print json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE) . "\\n";
$print($tidings->identify('u1', aliases: ['a@b.c'], properties: [])['aliases']['created']);
foreach ([['/v1/events/none', null], ['/v1/events', ['title' => '']]] as [$path, $body]) {
    try { $tidings->request($body ? 'POST' : 'GET', $path, $body); }
    catch (TidingsException $error) {
        $print([$error->status, $error->errorCode, strlen($error->requestId), count($error->details), $error->getMessage()]);
    }
}
try { (new Tidings('http://127.0.0.1:1', retrySeconds: 1))->send('t', 'c'); }
catch (TidingsException $error) { $print([$error->status, substr($error->getMessage(), 0, 30)]); }
`,
    ],
  ],
]

const databaseUrl = await cloneDatabase()
const sql = openSql(databaseUrl, { max: 2 })
let program: Program | undefined
afterAll(async () => {
  await program?.kill()
  await sql.end({ timeout: 1 })
})

for (const [tool, words] of STORIES) {
  test.skipIf(!hasTool(tool))(
    `${tool} asks, and sends each event once while the server is killed`,
    async () => {
      program ??= await startProgram({ env: { DATABASE_URL: databaseUrl } })
      const { projectId, path, account } = await newTenant({ sql, url: program.url })
      const { token: key } = await createKey(sql, { projectId, name: tool, scopes: SCOPES })
      let count = 0
      /** Kills the server after it wrote the event, so that the client gets no answer. */
      const proxy = createServer(async (request, response) => {
        const body = Buffer.concat(await Array.fromAsync(request))
        const nth = ++count
        if (nth === 10 || nth === 20) {
          response.writeHead(nth === 10 ? 503 : 429, { 'Retry-After': '0' }).end('<h1>Later</h1>')
          return
        }
        if (!program) return void request.socket.destroy()
        const { method, url, headers } = request
        const { authorization = '', 'idempotency-key': once } = headers
        const answer = await fetch(program.url + url, {
          method: method!,
          headers: {
            authorization,
            ...(once && { 'idempotency-key': `${once}`, 'content-type': 'application/json' }),
          },
          ...(body.length > 0 && { body }),
        })
        const text = await answer.text()
        if (nth === 30) {
          const killed = program
          program = undefined
          await killed.kill('SIGKILL')
          request.socket.destroy()
          program = await startProgram({ env: { DATABASE_URL: databaseUrl } })
          return
        }
        if (`${body}`.includes('"actions"'))
          await account.post(`${path}/events/${JSON.parse(text).data.id}/answer`, { action: 'yes' })
        response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text)
      })
      await once(proxy.listen(0, '127.0.0.1'), 'listening')
      const { port } = proxy.address() as AddressInfo
      const { stdout } = await run(tool, words, {
        env: {
          PATH: process.env['PATH'],
          LANG: 'C.UTF-8',
          TIDINGS_URL: `http://127.0.0.1:${port}/`,
          TIDINGS_API_KEY: key,
        },
      })
      proxy.closeAllConnections()
      proxy.close()
      const lines = stdout.trim().split('\n')
      expect(lines.map(line => JSON.parse(line))).toEqual([
        [true, 'answered', 'yes'],
        ['a@b.c'],
        [404, 'not_found', 36, 0, 'No event has this id'],
        [400, null, 36, 2, expect.stringContaining('; channelName: Required')],
        [null, 'No response of http://127.0.0.'],
      ])
      const { get } = createRequests(program!.url, key)
      const { items } = (await get('/v1/events?channel=ops&limit=100')).body.data
      expect(items.map(({ title }: { title: string }) => title).toReversed()).toEqual(
        Array.from({ length: 50 }, (_, n) => `Zürich ${n}`),
      )
      expect(items[0]).toMatchObject({ channelName: 'ops', level: 'high', metadata: { n: 49 } })
    },
  )
}

/** The same wait in each language, which may repeat a failed request for 2 s. */
const WAITS: [tool: string, words: string[]][] = [
  [
    'python3',
    [
      '-c',
      `import sys
sys.path.insert(0, "${CLIENTS}/python")
sys.dont_write_bytecode = True
from tidings import Tidings
print(Tidings(retry_seconds=2).wait_for_answer("evt_1")["action"])
`,
    ],
  ],
  [
    'ruby',
    [
      '-e',
      `require "${CLIENTS}/ruby/tidings"
puts Tidings.new(retry_seconds: 2).wait_for_answer("evt_1")["action"]
`,
    ],
  ],
  [
    'php',
    [
      '-r',
      `require "${CLIENTS}/php/tidings.php";
echo (new Tidings\\Tidings(retrySeconds: 2))->waitForAnswer('evt_1')['action'], "\n";
`,
    ],
  ],
]

for (const [tool, words] of WAITS) {
  test.skipIf(!hasTool(tool))(
    `${tool} waits on for an answer if a request fails after a long wait`,
    async () => {
      let count = 0
      const server = createServer((request, response) => {
        if (++count === 1) return void setTimeout(() => request.socket.destroy(), 2_500)
        const data = { state: 'answered', action: 'yes' }
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify({ success: true, data }))
      })
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const { port } = server.address() as AddressInfo
      const { stdout } = await run(tool, words, {
        env: {
          PATH: process.env['PATH'],
          LANG: 'C.UTF-8',
          TIDINGS_URL: `http://127.0.0.1:${port}/`,
          TIDINGS_API_KEY: 'key',
        },
      }).finally(() => {
        server.closeAllConnections()
        server.close()
      })
      expect(stdout).toBe('yes\n')
    },
  )
}
