import { describe, expect, test } from 'bun:test'
import { listGroups, renderMarkdown } from '../../../src/dashboard/docs/markdown.ts'

const render = (text: string, name = 'page') =>
  renderMarkdown(
    { name, text },
    {
      findImage: file =>
        file === 'none.webp' ? undefined : { url: `/assets/${file}`, width: 720, height: 450 },
    },
  )

describe('a page from Markdown', () => {
  const page = render(`# Send \`events\`

The lead, with [a link](https://example.com).

## Retries & limits

Text.

## Retries & limits

### C++ and C#
`)

  test('has the title and the first paragraph as plain text', () => {
    expect([page.name, page.title, page.lead]).toEqual([
      'page',
      'Send events',
      'The lead, with a link.',
    ])
  })

  test('gives headings the same fragments as code hosts', () => {
    expect(page.headings).toEqual([
      { level: 2, id: 'retries--limits', text: 'Retries & limits' },
      { level: 2, id: 'retries--limits-1', text: 'Retries & limits' },
      { level: 3, id: 'c-and-c', text: 'C++ and C#' },
    ])
    expect(page.html).toContain('<h2 id="retries--limits">Retries &amp; limits <a class="anchor"')
  })

  test('has one section per heading for the search', () => {
    expect(page.sections.slice(0, 2)).toEqual([
      { anchor: '', title: 'Send events', text: 'The lead, with a link.' },
      { anchor: 'retries--limits', title: 'Retries & limits', text: 'Text.' },
    ])
  })

  test('requires a title, and images that exist', () => {
    expect(() => render('Text.')).toThrow('docs/page.md must begin with a title')
    expect(() => render('# T\n\n![A](none.webp)')).toThrow('There is no image none.webp')
  })
})

test.each([
  ['[a](webhooks.md)', '<a href="/docs/webhooks">a</a>'],
  ['[a](./webhooks.md#replay)', '<a href="/docs/webhooks#replay">a</a>'],
  ['[a](#here)', '<a href="#here">a</a>'],
  ['[a](../README.md#first)', '<a href="/docs">a</a>'],
  ['[a](https://example.com/?a=1&b)', '<a href="https://example.com/?a=1&amp;b">a</a>'],
  ['[`a`](../src/main.ts)', '<code>a</code>'],
  ['`/docs/api`', '<a href="/docs/api"><code>/docs/api</code></a>'],
  [
    '![A feed](feed.webp)',
    '<source srcset="/assets/feed-dark.webp" media="(prefers-color-scheme: dark)"><img src="/assets/feed.webp" alt="A feed" width="720" height="450" loading="lazy">',
  ],
])('%s is %s', (text, html) => {
  expect(render(`# T\n\n${text}`).html).toContain(html)
})

test('code is escaped and has a caption', () => {
  const { html } = render('# T\n\n```python\nprint("<b>")\n```')
  expect(html).toContain('<figcaption>Python</figcaption>')
  expect(html).toContain('<pre><code>print(&quot;&lt;b&gt;&quot;)</code></pre>')
})

test('an empty cell of a table header is no header cell', () => {
  const { html } = render('# T\n\n| A |  |\n| - | - |\n| 1 | 2 |')
  expect(html).toContain('<tr><th scope="col">A</th><td></td></tr>')
})

test('the index groups its pages', () => {
  const index = render(
    '# Docs\n\n## Run it\n\n- [A](a.md): one.\n- [B](b-c.md)\n\n## Use it\n\n### On a phone\n\n- [C](c.md)\n',
    'README',
  )
  expect(index.name).toBe('')
  expect(listGroups(index)).toEqual([
    { title: 'Run it', level: 2, names: ['a', 'b-c'] },
    { title: 'Use it', level: 2, names: [] },
    { title: 'On a phone', level: 3, names: ['c'] },
  ])
})
