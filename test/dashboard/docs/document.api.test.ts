import { beforeAll, describe, expect, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { listOperations, type Document } from '../../../src/dashboard/docs/document.ts'
import { withSharedServer } from '../../support/servers/server.ts'

const server = withSharedServer()
let page: string
let document: Document
let files: string[]

beforeAll(async () => {
  document = (await (await fetch(`${server.url}/openapi.json`)).json()) as Document
  page = await (await fetch(`${server.url}/docs/api`)).text()
  files = [...new Set([...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, url = '']) => url))]
})

/** Requests a path. The body is not decompressed. */
function get(path: string, headers: Record<string, string> = {}) {
  return fetch(server.url + path, {
    headers: { 'accept-encoding': 'identity', ...headers },
    decompress: false,
  })
}

describe('contract §8 the document', () => {
  test('is the same under both paths, byte for byte, and needs no key', async () => {
    const [one, other] = await Promise.all([get('/openapi.json'), get('/api/openapi.json')])
    expect([one.status, other.status]).toEqual([200, 200])
    expect(one.headers.get('content-type')).toStartWith('application/json')
    expect(one.headers.get('cache-control')).toBe('public, max-age=300')
    expect(one.headers.get('etag')).toBe(other.headers.get('etag'))
    expect(await one.text()).toBe(await other.text())
  })

  test('names in `servers` the URL of this server', () => {
    expect(document.servers).toEqual([{ url: server.server.url }])
  })
})

describe('contract §8 the HTML page', () => {
  test('shows every operation with its parameters, fields, statuses and headers', () => {
    const text = toText(page)
    for (const operation of listOperations(document)) {
      const article = page
        .split('<article')
        .find(part => part.includes(`id="${operation.operationId}"`))
      if (article === undefined) throw new Error(`${operation.operationId} is missing`)
      const shown = toText(article)
      expect(shown).toContain(operation.summary)
      expect(shown).toContain(operation.path)
      expect(shown).toContain(operation.method)
      for (const { name } of operation.parameters ?? [])
        expect(article).toContain(`<code>${name}</code>`)
      for (const [status, { description, headers }] of Object.entries(operation.responses)) {
        expect(article).toContain(`>${status}</span>`)
        expect(shown).toContain(description.replaceAll('`', ''))
        for (const name of Object.keys(headers ?? {})) expect(shown).toContain(name)
      }
    }
    for (const [name, { properties = {} }] of Object.entries(document.components?.schemas ?? {})) {
      expect(page).toContain(`id="schema-${name}"`)
      for (const field of Object.keys(properties)) expect(page).toContain(`<code>${field}</code>`)
    }
    expect(text).toContain(`curl ${server.server.url}/v1/events`)
  })

  test('lists every operation of /api with its permission', async () => {
    const management = (await (await get('/api/management.json')).json()) as Document
    const [, section = ''] = page.split('<section id="management"')
    for (const { method, path, summary, ...operation } of listOperations(management)) {
      const row = `${method} ${path} ${summary} Permission: ${operation['x-action']}`
      expect(toText(section).replace(/\s+/g, ' ')).toContain(row)
    }
    expect(section).toContain('href="/api/management.json"')
    expect(section).toContain('href="/swagger#management"')
  })

  test('has a target for every internal link, and no duplicate ids', () => {
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
    expect(ids.length).toBe(new Set(ids).size)
    expect(links.filter(link => !ids.includes(link))).toEqual([])
  })

  test('loads files only from this server', async () => {
    expect(files.map(url => url.replace(/\/\w{10}\//, '/')).sort()).toEqual([
      '/assets/docs.css',
      '/assets/docs.js',
      '/assets/theme-early.js',
      '/assets/tidings.svg',
    ])
    const texts = await Promise.all(files.map(async url => (await get(url)).text()))
    for (const text of [page, ...texts]) {
      const foreign = text.match(/(?:href|src|action|srcset)="(?!\/(?!\/)|#)[^"]*"|url\(|@import/g)
      expect(foreign).toBeNull()
    }
  })

  test.each(['/docs/api', '/docs/sending-events'])(
    '%s has no inline scripts or styles, and a policy that refuses them',
    async path => {
      const response = await get(path)
      const { headers } = response
      const policy = headers.get('content-security-policy')
      expect(policy).toContain(
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src",
      )
      expect(policy).not.toMatch(/unsafe|data:|http/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(await response.text()).not.toMatch(
        /<script(?!( type="module")? src=)|<style|\sstyle=|\son\w+=/i,
      )
    },
  )
})

describe('the guides', () => {
  test('every link and image of every page resolves on the server', async () => {
    const pages = new Map<string, string>()
    const queue = ['/docs']
    for (const path of queue) {
      if (pages.has(path)) continue
      const response = await get(path)
      expect([path, response.status, response.headers.get('content-type')]).toEqual([
        path,
        200,
        'text/html; charset=utf-8',
      ])
      const html = await response.text()
      pages.set(path, html)
      queue.push(...listLinks(html).flatMap(({ path }) => (path === '' ? [] : [path])))
    }
    const found = [...pages.keys()].map(path => path.replace('/docs/', ''))
    expect(found).toContain('sending-events')
    expect(found).toContain('api')

    const broken = [...pages].flatMap(([page, html]) =>
      listLinks(html)
        .filter(({ path, anchor }) => {
          const target = pages.get(path || page) ?? ''
          return anchor !== undefined && !target.includes(` id="${anchor}"`)
        })
        .map(({ path, anchor }) => `${page} links to ${path}#${anchor}`),
    )
    expect(broken).toEqual([])

    for (const [, url = ''] of [...pages.values()].join('').matchAll(/<img src="([^"]+)"/g)) {
      const image = await get(url)
      expect([image.status, image.headers.get('content-type')]).toEqual([
        200,
        expect.stringMatching(/^image\/(webp|svg\+xml)$/),
      ])
    }
  })

  test('show the address of this server', async () => {
    const html = await (await get('/docs/sending-events')).text()
    expect(html).toContain(`TIDINGS_URL=${server.server.url}`)
    expect(html).not.toContain('localhost:3000')
  })

  test('the search index has every page and every operation', async () => {
    const entries = (await (await get('/docs/search.json')).json()) as Record<string, string>[]
    const urls = entries.map(({ url }) => url)
    expect(urls).toContain('/docs/sending-events#python')
    expect(urls).toContain('/docs/api#createEvent')
    expect(urls).toContain('/docs/api#rotateApiKey')
    const compressed = await get('/docs/search.json', { 'accept-encoding': 'br' })
    expect((await compressed.arrayBuffer()).byteLength).toBeLessThan(160_000)
  })

  test('/llms.txt maps every page that the navigation lists, at the address of this server', async () => {
    const [map, home] = await Promise.all([get('/llms.txt'), get('/docs')])
    expect(map.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const text = await map.text()
    expect(text).toStartWith('# Tidings\n\n> ')
    const [, navigation = ''] = (await home.text()).split(/<nav class="sidebar"|<\/nav>/)
    const listed = [...navigation.matchAll(/href="(\/[^"]+)"/g)].map(([, path]) => path)
    const mapped = [...text.matchAll(/^- \[.+?\]\((.+?)\)(: .+)?$/gm)].map(([, url]) => url)
    expect(mapped.toSorted()).toEqual(
      listed
        .filter(path => path !== '/docs')
        .map(path => server.server.url + path)
        .toSorted(),
    )
    expect(text).toContain('\n## Run a server\n')
  })

  test('a page that does not exist is 404', async () => {
    expect((await get('/docs/nothing')).status).toBe(404)
  })
})

describe('files for browsers', () => {
  test.each([
    '/docs',
    '/docs/api',
    '/docs/search.json',
    '/llms.txt',
    '/',
    '/openapi.json',
    'docs.css',
  ])(
    '%s has the encoding that the request asks for, and is 304 if the client has it',
    async name => {
      const path = toPath(name)
      const plain = await get(path)
      const text = Buffer.from(await plain.arrayBuffer())
      const brotli = await get(path, { 'accept-encoding': 'gzip, deflate, br' })
      const gzip = await get(path, { 'accept-encoding': 'gzip, br;q=0' })
      expect(brotli.headers.get('content-encoding')).toBe('br')
      expect(gzip.headers.get('content-encoding')).toBe('gzip')
      expect(gzip.headers.get('vary')).toBe('Accept-Encoding')
      expect(brotliDecompressSync(await brotli.arrayBuffer()).equals(text)).toBeTrue()
      expect(gunzipSync(await gzip.arrayBuffer()).equals(text)).toBeTrue()
      const etag = plain.headers.get('etag') ?? ''
      for (const known of [etag, etag.replace('W/', ''), `"other", ${etag}`]) {
        const { status, headers, body } = await get(path, { 'if-none-match': known })
        expect([status, headers.get('etag'), body]).toEqual([304, etag, null])
      }
      expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200)
    },
  )

  test('hashed files are immutable, pages are revalidated', async () => {
    for (const url of files) {
      expect((await get(url)).headers.get('cache-control')).toBe(
        'public, max-age=31536000, immutable',
      )
    }
    for (const path of ['/docs', '/docs/api', '/docs/contract', '/'])
      expect((await get(path)).headers.get('cache-control')).toBe('no-cache')
  })

  test('crawlers are excluded', async () => {
    expect(await (await get('/robots.txt')).text()).toBe('User-agent: *\nDisallow: /\n')
  })
})

/** Returns links into the documentation. A link within the page has an empty path. */
function listLinks(html: string): { path: string; anchor: string | undefined }[] {
  return [...html.matchAll(/href="((?:\/docs[^"#]*)?)(?:#([^"]*))?"/g)].flatMap(
    ([, path = '', anchor]) => (path === '' && anchor === undefined ? [] : [{ path, anchor }]),
  )
}

/** Returns the hashed URL of a file name. Returns a path unchanged. */
function toPath(name: string): string {
  if (name.startsWith('/')) return name
  return files.find(url => url.replace(/\/\w{10}\//, '/') === `/assets/${name}`) ?? name
}

function toText(html: string): string {
  return html
    .replace(/<[^>]*>/g, '')
    .replace(
      /&(lt|gt|quot|#39|amp);/g,
      (_, name: string) => ({ lt: '<', gt: '>', quot: '"', amp: '&' })[name] ?? "'",
    )
}
