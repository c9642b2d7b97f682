import type { V1FaultCode } from '../errors.ts'
import type { CODES } from '../http/rules.ts'
import { listOperations, toBaseUrl, toScopes, type Document, type Header } from './document.ts'
import { toCurl, type Examples } from './docs-example.ts'
import { anchorLink, headerAnchor, jsonText, sample } from './docs-operation.ts'
import { webhooks } from './docs-webhooks.ts'
import { inline, join, markup, toAnchor, type Markup, type Piece } from './html.ts'

export interface Chapter {
  anchor: string
  title: string
  emoji: string
  content: Piece
}

const STATUSES: Record<V1FaultCode, [status: number, meaning: string]> = {
  unauthorized: [
    401,
    'The key is missing, malformed, unknown, expired or revoked. The answer does not say which.',
  ],
  insufficient_scope: [403, 'The key lacks the scope that the operation needs.'],
  not_found: [404, 'There is no such path, or no such thing in this project.'],
  method_not_allowed: [405, 'The path has other methods: see `Allow`.'],
  request_timeout: [408, 'The body did not arrive in time.'],
  idempotency_key_in_use: [
    409,
    'The first request with this Idempotency-Key is still running. Try again shortly.',
  ],
  payload_too_large: [413, 'The body is over 256 KiB.'],
  unsupported_media_type: [415, 'The body is not of the content type that the operation takes.'],
  idempotency_key_reused: [422, 'The Idempotency-Key belongs to a different request.'],
  rate_limited: [429, 'Too many requests. Wait for `Retry-After` seconds.'],
  unavailable: [
    503,
    'The database cannot be reached in time. Try again with the same Idempotency-Key.',
  ],
}
/** These two answer in a form of their own, without a `code`. */
const WITHOUT_CODE: V1FaultCode[] = ['unauthorized', 'rate_limited']

const MEANINGS: Record<(typeof CODES)[number], string> = {
  required: 'The field is missing.',
  invalid_type: 'The value has another type.',
  too_short: 'The text is too short.',
  too_long: 'The text is too long.',
  too_many: 'There are too many items or keys.',
  too_deep: 'The object is nested too deeply.',
  invalid_format: 'The text has the wrong form, like an icon that is no emoji.',
  invalid_value: 'The value is not one of those allowed.',
  out_of_range: 'The number or moment is outside its bounds.',
  invalid_json: 'The body is not a JSON object.',
  invalid_encoding: 'The text is not valid UTF-8, or has a character that cannot be kept.',
}

const REQUEST_ID = '5f0c1c4e-8f2b-4b7a-9d35-2f6f4a1f7c10'

/** What holds for every operation, in the order in which a newcomer needs it. */
export function listChapters(document: Document, examples: Examples): Chapter[] {
  return [
    {
      anchor: 'quick-start',
      title: 'Quick start',
      emoji: '🚀',
      content: quickStart(document, examples),
    },
    {
      anchor: 'authentication',
      title: 'Authentication',
      emoji: '🔐',
      content: authentication(document),
    },
    { anchor: 'rate-limit', title: 'Rate limit', emoji: '⏱️', content: rateLimit() },
    { anchor: 'idempotency', title: 'Safe retries', emoji: '♻️', content: idempotency(document) },
    { anchor: 'answers', title: 'Answers and lists', emoji: '📦', content: answers() },
    { anchor: 'errors', title: 'Errors', emoji: '🧯', content: errors() },
    { anchor: 'webhooks', title: 'Webhooks', emoji: '📮', content: webhooks() },
    { anchor: 'headers', title: 'Response headers', emoji: '🏷️', content: headers(document) },
  ]
}

export function chapterSection({ anchor, title, emoji, content }: Chapter): Markup {
  return markup`<section id="${anchor}">
<h2><span class="emoji" aria-hidden="true">${emoji}</span> ${title} ${anchorLink(anchor, title)}</h2>
${content}
</section>`
}

function quickStart(document: Document, examples: Examples): Markup {
  const writes = listOperations(document).filter(({ requestBody }) => requestBody !== undefined)
  const first = writes.find(({ operationId }) => operationId === 'createEvent') ?? writes[0]
  const text = writes.find(({ requestBody }) => 'text/plain' in (requestBody?.content ?? {}))
  const toSample = (title: string, operation: typeof first) =>
    operation && sample(title, toCurl(document, examples, operation, toBaseUrl(document)))
  return markup`<div class="pair">
<div class="prose">
<p>The server prints an API key when it starts for the first time. Put it in place of
<code>YOUR_API_KEY</code> and send your first event. Its channel is made when it does not exist.</p>
<p>The answer <code>201</code> means that the event is stored durably: from then on it cannot be lost.</p>
${
  text &&
  markup`<p>No JSON at hand, in a cron job or a shell script? Send text. The first line is the title, an
emoji at its start the icon, and the rest the description.</p>`
}
</div>
<div class="samples">${toSample('Send an event', first)}${toSample('Send plain text', text)}</div>
</div>`
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
<p>Without a valid key the answer is <code>401</code>, the same for every cause. After 60 failures in a minute
from one address it is <code>429</code>; a valid key is never held up by that.</p>
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

function errors(): Markup {
  const example = {
    success: false,
    error: 'Validation error',
    details: [{ path: ['channelName'], message: 'Required', code: 'required' }],
    requestId: REQUEST_ID,
  }
  const statuses = Object.entries(STATUSES).map(([code, [status, meaning]]) => [
    markup`<span class="status">${status}</span>`,
    [!WITHOUT_CODE.includes(code as V1FaultCode) && markup`<code>${code}</code> `, inline(meaning)],
  ])
  return markup`<div class="pair">
<div class="prose">
<p>A request that breaks a rule is answered <code>400</code>, and <code>details</code> lists every field that does,
up to 20: where it is, what is wrong in words for people, and a <code>code</code> for programs.</p>
${plainTable(
  ['Code', 'Meaning'],
  Object.entries(MEANINGS).map(([code, meaning]) => [markup`<code>${code}</code>`, meaning]),
)}
<p>Other refusals carry the reason in <code>error</code>, and most a <code>code</code> beside it. A
<code>500</code> is a bug of the server: its log says more under the <code>requestId</code>.</p>
${plainTable(['Status', 'Code and meaning'], statuses)}
</div>
<div class="samples">${sample('Answer 400', jsonText(example))}</div>
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

function plainTable(titles: readonly string[], rows: readonly Piece[][]): Markup {
  return markup`<table>
<thead><tr>${titles.map(title => markup`<th scope="col">${title}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...rest]) =>
      markup`<tr><th scope="row">${first}</th>${rest.map(cell => markup`<td>${cell}</td>`)}</tr>`,
  )}</tbody>
</table>`
}
