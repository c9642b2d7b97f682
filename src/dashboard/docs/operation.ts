import { resolve, toScopes, type Operation, type Reply } from './document.ts'
import { toCurl, toExample, type Reference } from './example.ts'
import { fieldTable, parameterTable, toShape } from './schema.ts'
import {
  anchorLink,
  inline,
  join,
  markup,
  methodBadge,
  prose,
  sample,
  toAnchor,
  type Markup,
  type Piece,
} from './html.ts'

/** An operation with its parameters and responses, beside a sample of each. */
export function operationArticle(reference: Reference, operation: Operation): Markup {
  const { operationId, summary, description, method, path, parameters = [] } = operation
  const scopes = toScopes(operation)
  return markup`<article class="operation" id="${toAnchor(operationId)}">
<h3>${summary} ${anchorLink(toAnchor(operationId), summary)}</h3>
<p class="route">${methodBadge(method)}
<code>${path}</code></p>
<div class="pair">
<div class="prose">
${description !== undefined && prose(description)}
${scopes.length > 0 && markup`<p>Needs a key with the scope ${join(scopes.map(code), ', ')}.</p>`}
${parameters.length > 0 && markup`<h4>Parameters</h4>${parameterTable(reference, parameters)}`}
${bodyPart(reference, operation)}
<h4>Responses</h4>
${replyTables(operation)}
</div>
<div class="samples">
${operationSamples(reference, operation)}
</div>
</div>
</article>`
}

/** A request of an operation, and its successful response. */
export function operationSamples(reference: Reference, operation: Operation): Piece {
  return [sample('Request', toCurl(reference, operation)), replySample(reference, operation)]
}

/** A named schema with all its fields. */
export function schemaArticle(reference: Reference, name: string): Markup {
  const schema = reference.document.components?.schemas?.[name] ?? {}
  const anchor = toAnchor('schema', name)
  return markup`<article class="schema" id="${anchor}">
<h3><code>${name}</code> ${anchorLink(anchor, name)}</h3>
${schema.description !== undefined && prose(schema.description)}
${schema.properties ? fieldTable(reference, schema) : markup`<p>${toShape(schema)}</p>`}
</article>`
}

function bodyPart(reference: Reference, { requestBody }: Operation): Piece {
  const contents = Object.entries(requestBody?.content ?? {})
  const [, first] = contents[0] ?? []
  if (first === undefined) return false
  const types = join(
    contents.map(([type]) => code(type)),
    ' or ',
  )
  const isObject = resolve(reference.document, first.schema).properties !== undefined
  return markup`<h4>Body</h4>
<p class="hint">${toShape(first.schema)} as ${types}</p>
${isObject && fieldTable(reference, first.schema)}`
}

/** Successes, and failures in a folded list: they are much the same everywhere. */
function replyTables({ responses }: Operation): Piece {
  const replies = Object.entries(responses)
  const good = replies.filter(([status]) => status.startsWith('2'))
  const refused = replies.filter(([status]) => !status.startsWith('2'))
  const statuses = refused.map(([status]) => markup`<span class="status">${status}</span>`)
  return [
    good.length > 0 && replyTable(good),
    refused.length > 0 &&
      markup`<details class="refusals"><summary>Failures: ${join(statuses, ' ')}</summary>
${replyTable(refused)}</details>`,
  ]
}

function replyTable(replies: readonly [status: string, reply: Reply][]): Markup {
  return markup`<table class="replies">
<thead><tr><th scope="col">Status</th><th scope="col">Description</th></tr></thead>
<tbody>${replies.map(([status, reply]) => replyRow(status, reply))}</tbody>
</table>`
}

function replyRow(status: string, { description, headers = {}, content = {} }: Reply): Markup {
  const names = Object.keys(headers).map(code)
  return markup`<tr>
<th scope="row"><span class="status${status.startsWith('2') && ' good'}">${status}</span></th>
<td><p>${inline(description)}</p>
${Object.values(content).map(({ schema }) => markup`<p class="hint">Body: <code>${toShape(schema)}</code></p>`)}
${names.length > 0 && markup`<p class="hint">Headers: ${join(names, ', ')}</p>`}</td>
</tr>`
}

function replySample(reference: Reference, { responses }: Operation): Piece {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([status, { content = {} }]) =>
      Object.values(content).map(({ schema }) =>
        sample(`Response ${status}`, JSON.stringify(toExample(reference, schema), null, 2)),
      ),
    )
}

function code(text: string): Markup {
  return markup`<code>${text}</code>`
}
