import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { packClient } from '../../../clients/pack.ts'
import { VERSION } from '../../../src/base/version.ts'
import { copyCheckout } from '../../support/checkout.ts'
import { listCodeBlocks, listMarkdown, ROOT, type CodeBlock } from '../../support/docs.ts'
import { findFreePort } from '../../support/loopback.ts'
import { makeFolder } from '../../support/scratch.ts'
import { findDeno } from '../../support/servers/process.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { hasTool } from '../../support/tools.ts'
import { scaled } from '../../support/until.ts'
import { newProject } from '../../support/worlds/project.ts'

const run = promisify(execFile)
const README = 'clients/typescript/README.md'
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')

const samples = [README, ...listMarkdown()]
  .flatMap(listCodeBlocks)
  .filter(({ text }) => text.includes("from '@tidings/client'"))

describe.skipIf(!hasTool('npm'))('the package from npm pack', () => {
  let folder: string
  let server: Booted

  // An empty project of somebody else, with the package from its tarball.
  beforeAll(async () => {
    server = await boot()
    const source = makeFolder()
    await packClient(source)
    folder = makeFolder()
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: source })
    const [tarball = ''] = readdirSync(folder)
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
    const options = ['--offline', '--no-audit', '--no-fund', '--cache', makeFolder()]
    await run('npm', ['install', ...options, `./${tarball}`], { cwd: folder })
    mkdirSync(join(folder, 'node_modules/@types'))
    for (const name of ['@types/node', 'undici-types'])
      symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
    for (const sample of samples) writeFileSync(join(folder, toName(sample)), sample.text)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('has one ES module, one file of types, a licence, and no dependency', () => {
    const installed = join(folder, 'node_modules/@tidings/client')
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' })
    expect(files.toSorted()).toEqual([
      'LICENSE',
      'README.md',
      'dist',
      'dist/client.d.ts',
      'dist/client.js',
      'package.json',
    ])
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as object
    expect(manifest).toMatchObject({ name: '@tidings/client', version: VERSION, license: 'MIT' })
    expect(Object.keys(manifest).filter(name => /dependencies/i.test(name))).toEqual([])
    for (const name of ['client.js', 'client.d.ts']) {
      const text = readFileSync(join(installed, 'dist', name), 'utf8')
      expect(text).not.toMatch(/^import\b|^export .*\bfrom\b|\brequire\(|\bimport\(/m)
    }
    const code = readFileSync(join(installed, 'dist/client.js'), 'utf8')
    const minified = new Bun.Transpiler({ minifyWhitespace: true }).transformSync(code)
    expect(gzipSync(minified).length).toBeLessThanOrEqual(5 * 1024)
  })

  test('compiles strictly for es2022 with every kind of module, and so do the samples', async () => {
    const names = samples.map(toName)
    expect(names.length).toBeGreaterThanOrEqual(5)
    const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess']
    const common = ['--noEmit', '--target', 'es2022', '--types', 'node', ...strict]
    const compile = (files: string[], ...options: string[]) =>
      run(process.execPath, [TSC, ...common, ...options, ...files], { cwd: folder })
    await compile(names, '--module', 'esnext', '--moduleResolution', 'bundler')
    const wrong = samples[0]!.text.replace('channelName', 'chanelName')
    writeFileSync(join(folder, 'wrong.ts'), wrong)
    // The types are there: a misspelt field is an error, and the only one.
    const { stdout } = await compile(
      [...names, 'wrong.ts'],
      ...['--module', 'nodenext', '--lib', 'es2022'],
    ).catch((error: { stdout: string }) => error)
    expect(stdout).toContain("'chanelName'")
    expect(stdout.match(/error TS/g)).toHaveLength(1)
  })

  test.each([
    ['node', 'node', []],
    ['bun', process.execPath, []],
    ['deno', findDeno(), ['run', '-A', '--no-check']],
  ])(
    'runs every sample on %s',
    async (_, command, before) => {
      const { key, id: projectId } = await newProject(server, { limit: 1000 })
      const env = { ...process.env, TIDINGS_URL: server.url, TIDINGS_API_KEY: key }
      const names = samples.map(sample => {
        const name = toName(sample).replace('.ts', '.mjs')
        const code = new Bun.Transpiler({ loader: 'ts' }).transformSync(sample.text)
        writeFileSync(join(folder, name), code)
        return name
      })
      await Promise.all(names.map(name => run(command, [...before, name], { cwd: folder, env })))
      const created = await server.sql`
      select from events where project_id = ${projectId} and title = 'Page viewed'
    `
      expect(created).toHaveLength(1)

      // A program whose queue cannot be sent ends after flush.
      const queue = `import { createClient } from '@tidings/client'
      const tidings = createClient({ baseUrl: 'http://127.0.0.1:${await findFreePort()}', apiKey: 'tdg_x', retries: 0 })
      tidings.queue({ channelName: 'a', title: 'b' })
      console.log(await tidings.flush({ timeoutMs: 200 }))`
      writeFileSync(join(folder, 'queue.mjs'), queue)
      const { stdout } = await run(command, [...before, 'queue.mjs'], {
        cwd: folder,
        timeout: 20_000,
      })
      expect(stdout.trim()).toBe('1')
    },
    scaled(60_000),
  )
})

test.skipIf(!hasTool('npm'))(
  'the documented line installs what it needs, and builds and installs it from a fresh checkout',
  async () => {
    const lines = [README, 'docs/sending-events.md'].flatMap(path =>
      listCodeBlocks(path)
        .map(({ text }) => text)
        .filter(text => text.includes('build:client')),
    )
    expect(lines).toEqual([lines[0]!, lines[0]!])
    const folder = makeFolder()
    const [checkout, app, bin] = ['tidings', 'app', 'bin'].map(name => join(folder, name))
    copyCheckout(checkout!)
    mkdirSync(app!)
    writeFileSync(join(app!, 'package.json'), '{"type": "module"}')
    mkdirSync(bin!)
    symlinkSync(process.execPath, join(bin!, 'bun'))
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` }
    await run('sh', ['-ec', lines[0]!], { cwd: app!, env })
    const program =
      "import { createClient } from '@tidings/client'; console.log(typeof createClient)"
    writeFileSync(join(app!, 'program.js'), program)
    expect((await run('node', ['program.js'], { cwd: app! })).stdout).toBe('function\n')
  },
  scaled(180_000),
)

/** Returns the name of the file that has the sample. */
function toName({ place }: CodeBlock): string {
  return `${place.replace(/\W/g, '-')}.ts`
}
