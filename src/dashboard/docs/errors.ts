import type { V1FaultCode } from '../../errors.ts'
import type { ISSUE_CODES } from '../../http/rules.ts'
import { inline, markup, type Markup, type Piece } from './html.ts'
import { jsonText, sample } from './operation.ts'

export const REQUEST_ID = '5f0c1c4e-8f2b-4b7a-9d35-2f6f4a1f7c10'

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
    'The server has no room, or cannot reach the database in time. Try again with the same Idempotency-Key.',
  ],
}
/** These two answer in a form of their own, without a `code`. */
const WITHOUT_CODE: V1FaultCode[] = ['unauthorized', 'rate_limited']

const MEANINGS: Record<(typeof ISSUE_CODES)[number], string> = {
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

/** What refusals look like and mean. */
export function errorsChapter(): Markup {
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

export function plainTable(titles: readonly string[], rows: readonly Piece[][]): Markup {
  return markup`<table>
<thead><tr>${titles.map(title => markup`<th scope="col">${title}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...rest]) =>
      markup`<tr><th scope="row">${first}</th>${rest.map(cell => markup`<td>${cell}</td>`)}</tr>`,
  )}</tbody>
</table>`
}
