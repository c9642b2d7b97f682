import { describe, expect, test } from 'bun:test'
import { accepts } from '../../../src/http/compression.ts'
import { collectExamples, toCurl } from '../../../src/dashboard/docs/example.ts'
import { renderLayout } from '../../../src/dashboard/docs/layout.ts'
import { referenceContent, referenceContents } from '../../../src/dashboard/docs/reference.ts'
import { toBounds, toShape } from '../../../src/dashboard/docs/schema.ts'
import { listOperations, type Document } from '../../../src/dashboard/docs/document.ts'
import { inline, markup } from '../../../src/dashboard/docs/html.ts'
import { pack } from '../../../src/dashboard/pack.ts'

const assets = {
  style: '/assets/docs.css',
  theme: '/assets/theme-early.js',
  script: '/assets/docs.js',
  logo: '/assets/tidings.svg',
}
const INDEX = { name: '', title: '', lead: '', html: '', headings: [], sections: [] }

function renderReference(document: Document): string {
  return renderLayout({
    docs: { index: INDEX, pages: [], groups: [] },
    assets,
    path: '/docs/api',
    title: document.info.title,
    description: document.info.title,
    contents: referenceContents(document, document),
    content: referenceContent(document, document),
  })
}

/** Returns a document in which every free text is `text`. */
function toDocument(text: string): Document {
  const field = {
    type: 'string',
    description: text,
    examples: [text],
    default: text,
    enum: [text],
    pattern: text,
  }
  return {
    info: { title: text, version: text, summary: text, description: text },
    servers: [{ url: text }],
    tags: [{ name: text, description: text }],
    paths: {
      [`/v1/${text}/{id}`]: {
        post: {
          operationId: text,
          summary: text,
          description: text,
          tags: [text],
          security: [{ apiKey: [text] }],
          parameters: [{ name: text, in: text, required: true, description: text, schema: field }],
          requestBody: {
            content: {
              [text]: { schema: { $ref: `#/components/schemas/${text}` }, example: text },
            },
          },
          responses: {
            201: {
              description: text,
              headers: { [text]: { description: text, schema: field } },
              content: {
                'application/json': { schema: { type: 'object', properties: { [text]: field } } },
              },
            },
            400: { description: text },
          },
        },
      },
    },
    components: {
      schemas: {
        [text]: {
          type: 'object',
          description: text,
          properties: { [text]: field },
          required: [text],
        },
      },
    },
  }
}

describe('contract §8 the HTML page', () => {
  test.each([
    ['an element', '<script>alert(1)</script>', /<script>/],
    ['an attribute in double quotes', '" onclick="alert(1)', /" onclick/],
    ['an attribute in single quotes', "' onclick='alert(1)", /' onclick/],
    ['an element inside code', '`<img src=x onerror=alert(1)>`', /<img src=x/],
    ['an entity', '&lt;', /[^;]&lt;/],
  ])("the document's text cannot become %s", (_, text, forbidden) => {
    const page = renderReference(toDocument(text))
    expect(page).not.toMatch(forbidden)
    expect(page.length).toBeGreaterThan(5_000)
  })

  test('code is escaped and loses its backticks', () => {
    expect(markup`${inline('a < `b > "c"`')}`.markup).toBe(
      'a &lt; <code>b &gt; &quot;c&quot;</code>',
    )
  })

  test('a document without optional parts is rendered', () => {
    const bare = { info: { title: 'Bare', version: '1' }, paths: {} }
    const page = renderReference(bare)
    expect(page).toContain('<title>Bare · Tidings documentation</title>')
  })

  test('an operation names the scope that it needs', () => {
    expect(renderReference(toDocument('thing'))).toContain(
      'Needs a key with the scope <code>thing</code>',
    )
  })
})

test.each([
  [{ minLength: 1, maxLength: 255 }, ['1 to 255 characters']],
  [{ maxLength: 5_000 }, ['up to 5,000 characters']],
  [{ minimum: 1, maximum: 100, default: 50 }, ['1 to 100', 'default `50`']],
  [{ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }, ['at least 0']],
  [{ maxItems: 20, items: { maxLength: 1 } }, ['up to 20 items', 'each up to 1 character']],
  [{ format: 'date-time' }, ['ISO 8601']],
  [{ enum: ['a', 'b'] }, ['one of `a`, `b`']],
  [{ pattern: 'x'.repeat(200) }, []],
])('limits are written in words: %j', (schema, expected) => {
  expect(toBounds(schema)).toEqual(expected)
})

test.each([
  [{ type: 'string' }, 'string'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [
    { type: 'array', items: { $ref: '#/components/schemas/Event' } },
    '<a href="#schema-Event">Event</a>[]',
  ],
  [{ anyOf: [{ type: 'integer' }, { type: 'null' }] }, 'integer | null'],
  [
    { type: 'object', properties: { a: { const: true }, b: { type: 'string' } }, required: ['a'] },
    '{ a: true, b?: string }',
  ],
])('a type fits on one line: %j', (schema, expected) => {
  expect(markup`${toShape(schema)}`.markup).toBe(expected)
})

test('a copied request is one shell command with any example', () => {
  const document: Document = {
    info: { title: 'T', version: '1' },
    servers: [{ url: 'https://example.com' }],
    paths: {
      '/v1/things/{id}': {
        post: {
          operationId: 'a',
          summary: 'A',
          parameters: [{ name: 'id', in: 'path', schema: { examples: ["it's/1"] } }],
          requestBody: {
            content: { 'application/json': { schema: {}, example: { text: "it's $HOME" } } },
          },
          responses: {},
        },
      },
    },
  }
  const [operation] = listOperations(document)
  const curl = operation && toCurl(collectExamples(document), operation)
  expect(curl?.split(' \\\n  ')).toEqual([
    `curl 'https://example.com/v1/things/it'\\''s%2F1'`,
    '-H "Authorization: Bearer $TIDINGS_API_KEY"',
    "-H 'Content-Type: application/json'",
    `-d '{"text":"it'\\''s $HOME"}'`,
  ])
})

test.each([
  ['', 'br', false],
  ['br', 'br', true],
  ['gzip, deflate, br', 'br', true],
  ['GZIP;q=0.5', 'gzip', true],
  ['br;q=0, gzip', 'br', false],
  ['br; q=0.000', 'br', false],
  ['*', 'br', true],
  ['*, br;q=0', 'br', false],
  ['gzip, *;q=0', 'br', false],
  ['brotli', 'br', false],
  ['br;q=x', 'br', false],
])('Accept-Encoding %p allows %s: %p', (header, coding, expected) => {
  expect(accepts(header, coding)).toBe(expected)
})

describe('files for browsers', () => {
  const toFiles = (files: Record<string, string>) =>
    new Map(Object.entries(files).map(([name, text]) => [name, new TextEncoder().encode(text)]))
  const decode = (base64 = '') => Buffer.from(base64, 'base64').toString()

  test('their URLs change with their content, and with that of files they refer to', () => {
    const style = 'body { background: url(/assets/logo.svg) }'
    const before = pack(toFiles({ 'a.css': style, 'logo.svg': '<svg/>' }))
    const after = pack(toFiles({ 'a.css': style, 'logo.svg': '<svg></svg>' }))
    expect(decode(before['a.css']?.body)).toBe(
      `body { background: url(${before['logo.svg']?.url}) }`,
    )
    expect(before['logo.svg']?.url).toMatch(/^\/assets\/[0-9a-f]{10}\/logo\.svg$/)
    expect(after['a.css']?.url).not.toBe(before['a.css']?.url)
  })

  test('packing is the same for any order of the files', () => {
    const files = { 'index.html': '<p>', 'a.css': 'p {}' }
    const reversed = Object.fromEntries(Object.entries(files).reverse())
    expect(JSON.stringify(pack(toFiles(files)))).toBe(JSON.stringify(pack(toFiles(reversed))))
  })

  test('files that do not shrink are not compressed', () => {
    const packed = pack(toFiles({ 'robots.txt': 'a', 'b.css': 'p {}\n'.repeat(100) }))
    expect([packed['robots.txt']?.brotli, packed['robots.txt']?.gzip]).toEqual([
      undefined,
      undefined,
    ])
    expect(packed['b.css']?.brotli).toBeString()
  })

  test('files may refer to each other', () => {
    const packed = pack(toFiles({ 'a.css': 'url(/assets/b.css)', 'b.css': 'url(/assets/a.css)' }))
    expect(decode(packed['a.css']?.body)).toBe(`url(${packed['b.css']?.url})`)
    expect(decode(packed['b.css']?.body)).toBe(`url(${packed['a.css']?.url})`)
  })

  test('a reference to a file that does not exist stops the build', () => {
    const files = { 'a.css': 'url(/assets/b.svg)' }
    expect(() => pack(toFiles(files))).toThrow('a.css refers to b.svg')
  })
})
