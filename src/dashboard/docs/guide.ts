import { listOperations, toBaseUrl, toScopes, type Document, type Header } from './document.ts'
import { toCurl, type Examples } from './example.ts'
import { errorsChapter, plainTable, REQUEST_ID } from './errors.ts'
import {
  firstEventTabs,
  identifyGuide,
  keyOffer,
  pushGuide,
  selfHostingGuide,
  webhooksGuide,
} from './guides.ts'
import { anchorLink, headerAnchor, jsonText, sample } from './operation.ts'
import { inline, join, markup, toAnchor, type Markup, type Piece } from './html.ts'

export interface Chapter {
  anchor: string
  title: string
  emoji: string
  content: Piece
}

/** What holds for every operation, in the order in which a newcomer needs it. */
export function listChapters(document: Document, examples: Examples): Chapter[] {
  const baseUrl = toBaseUrl(document)
  const chapter = (anchor: string, title: string, emoji: string, content: Piece): Chapter => ({
    anchor,
    title,
    emoji,
    content,
  })
  return [
    chapter('quick-start', 'Quick start', '🚀', quickStart(document, examples)),
    chapter('who', 'Whose event it is', '👤', identifyGuide(baseUrl)),
    chapter('authentication', 'Authentication', '🔐', authentication(document)),
    chapter('rate-limit', 'Rate limit', '⏱️', rateLimit()),
    chapter('idempotency', 'Safe retries', '♻️', idempotency(document)),
    chapter('answers', 'Answers and lists', '📦', answers()),
    chapter('errors', 'Errors', '🧯', errorsChapter()),
    chapter('headers', 'Response headers', '🏷️', headers(document)),
    chapter('webhooks', 'Webhooks', '🪝', webhooksGuide()),
    chapter('push', 'Push notifications', '📱', pushGuide()),
    chapter('self-hosting', 'Self-hosting', '🏡', selfHostingGuide(baseUrl)),
  ]
}

export function chapterSection({ anchor, title, emoji, content }: Chapter): Markup {
  return markup`<section id="${anchor}">
<h2><span class="emoji" aria-hidden="true">${emoji}</span> ${title} ${anchorLink(anchor, title)}</h2>
${content}
</section>`
}

function quickStart(document: Document, examples: Examples): Markup {
  const baseUrl = toBaseUrl(document)
  const text = listOperations(document).find(
    ({ requestBody }) => 'text/plain' in (requestBody?.content ?? {}),
  )
  return markup`<div class="prose">
<p>Put your API key in place of <code>YOUR_API_KEY</code> and send your first event. Its channel is made when it does
not exist. The answer <code>201</code> means that the event is stored durably: from then on it cannot be lost.</p>
</div>
${keyOffer()}
${firstEventTabs(baseUrl)}
${
  text &&
  markup`<div class="pair">
<div class="prose"><p>No JSON at hand, in a cron job or a shell script? Send text. The first line is the title, an
emoji at its start the icon, and the rest the description.</p></div>
<div class="samples">${sample('Send plain text', toCurl(document, examples, text, baseUrl))}</div>
</div>`
}`
}

function authentication(document: Document): Markup {
  const byScope = new Map<string, Markup[]>()
  for (const operation of listOperations(document)) {
    const link = markup`<a href="#${toAnchor(operation.operationId)}">${operation.summary}</a>`
    for (const scope of toScopes(operation))
      byScope.set(scope, [...(byScope.get(scope) ?? []), link])
  }
  const rows = [...byScope].map(([scope, links]) => [
    markup`<code>${scope}</code>`,
    join(links, ', '),
  ])
  return markup`<div class="pair">
<div class="prose">
<p>Every request under <code>/v1</code> carries an API key. A key belongs to one project of one
organization: it reads and writes there and nowhere else. Keep it on your servers. A key in a browser or in a URL is
a key that others have.</p>
<p>Without a valid key the answer is <code>401</code>, the same for every cause, however often it happens.</p>
${rows.length > 0 && markup`<p>A key may be limited to some scopes.</p>${plainTable(['Scope', 'Opens'], rows)}`}
</div>
<div class="samples">
${sample('Every request', 'Authorization: Bearer YOUR_API_KEY')}
${sample('Answer 401', jsonText({ error: 'Unauthorized', message: 'Invalid or missing API key' }))}
</div>
</div>`
}

function rateLimit(): Markup {
  const sampleText =
    'HTTP/1.1 201 Created\nX-RateLimit-Limit: 100\nX-RateLimit-Remaining: 99\nX-RateLimit-Reset: 1795166460'
  return markup`<div class="pair">
<div class="prose">
<p>A key may make 100 requests in 60 seconds unless its own limit says otherwise. The window begins with the
key’s first request and does not move. Every answer says what is left of it.</p>
<p>Beyond the limit the answer is <code>429</code>. Wait for <code>Retry-After</code> seconds; refused requests
do not make the wait longer.</p>
</div>
<div class="samples">${sample('Headers of an answer', sampleText)}</div>
</div>`
}

function idempotency(document: Document): Markup {
  const text = [
    `curl ${toBaseUrl(document)}/v1/events`,
    "-H 'Authorization: Bearer YOUR_API_KEY'",
    "-H 'Idempotency-Key: order-1042-paid'",
    "-H 'Content-Type: application/json'",
    `-d '{"channelName":"orders","title":"Order 1042 paid"}'`,
  ].join(' \\\n  ')
  return markup`<div class="pair">
<div class="prose">
<p>Give a <code>POST</code> an <code>Idempotency-Key</code>, and you can send it again without fear when the
connection breaks: for 24 hours the same key gets the same answer, byte for byte, and nothing is done twice. Such an
answer carries <code>X-Idempotent-Replay: true</code>.</p>
<ul>
<li>The key is yours to choose: up to 255 printable ASCII characters, such as an order number.</li>
<li>The same key with another request is refused with <code>422</code>.</li>
<li>While the first request still runs, the second is answered <code>409</code>: try again shortly.</li>
<li>Only requests that succeeded are remembered, so that a mistake can be mended under the same key.</li>
<li>Keys count within a project, whichever API key sends them.</li>
</ul>
</div>
<div class="samples">${sample('A request that is safe to repeat', text)}</div>
</div>`
}

function answers(): Markup {
  const page = { success: true, data: { items: [], nextCursor: null }, requestId: REQUEST_ID }
  return markup`<div class="pair">
<div class="prose">
<p>Answers are JSON. What you asked for is in <code>data</code>, and <code>requestId</code> names the request in
the server’s log: quote it when you ask for help. Moments are ISO 8601 in UTC.</p>
<p>Requests are JSON in UTF-8, up to 256 KiB. Fields that are not known are ignored. Lengths count
Unicode code points.</p>
<p>Lists come in pages of up to 100 items, newest first. While <code>nextCursor</code> is not null, pass it as
<code>cursor</code> to get the next page. To follow a project instead, read forward with <code>after</code> and the
last <code>seq</code> you have seen: it only grows, and an event never appears behind one that you have read.</p>
</div>
<div class="samples">${sample('The last page of a list', jsonText(page))}</div>
</div>`
}

function headers(document: Document): Markup {
  const known = new Map<string, Header>()
  for (const { responses } of listOperations(document)) {
    for (const reply of Object.values(responses)) {
      for (const [name, header] of Object.entries(reply.headers ?? {})) {
        if (!known.has(name)) known.set(name, header)
      }
    }
  }
  const rows = [...known].map(([name, { description = '' }]) => [
    markup`<code id="${headerAnchor(name)}">${name}</code>`,
    inline(description),
  ])
  return markup`<div class="prose">${plainTable(['Header', 'Meaning'], rows)}</div>`
}
