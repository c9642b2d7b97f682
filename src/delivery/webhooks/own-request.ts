import type { Secrets } from '../../database/secrets/secrets.ts'
import { findHeaderProblem } from '../../http/egress/request.ts'
import type { Issue } from '../../http/rules.ts'
import { invalidField, InvalidRequest } from '../../http/validation.ts'
import { toSealedCell } from './sealing.ts'
import { findTemplateProblem } from '../../log/events/template.ts'
import type { WebhookChanges } from './webhook-schema.ts'

/** The part of a request that an admin wrote. */
export interface OwnRequest {
  /** A template; null for the body of the preset. */
  body: string | null
  headers: Readonly<Record<string, string>>
}

export const NO_OWN_REQUEST: OwnRequest = { body: null, headers: {} }
const MAX_HEADERS = 10
/** The headers that belong to the message itself. */
const RESERVED = /^(content|webhook|proxy)-/i

type Opener = Pick<Secrets, 'open'>

/** Opens the sealed body and headers of a webhook. */
export function openOwnRequest(secrets: Opener, id: string, sealed: string | null): OwnRequest {
  if (sealed === null) return NO_OWN_REQUEST
  return JSON.parse(secrets.open(sealed, toSealedCell('own_request', id))) as OwnRequest
}

/** Seals a body and headers; null if there are none. */
export function sealOwnRequest(secrets: Secrets, id: string, own: OwnRequest): string | null {
  if (own.body === null && Object.keys(own.headers).length === 0) return null
  return secrets.seal(JSON.stringify(own), toSealedCell('own_request', id))
}

/**
 * Returns a body and headers after a change. A header without a value keeps the stored one. With
 * `isElsewhere` none is kept: values for one server are never sent to another one. Throws
 * `InvalidRequest`.
 */
export function changeOwnRequest(
  stored: OwnRequest,
  { body, headers }: Pick<WebhookChanges, 'body' | 'headers'>,
  isElsewhere: boolean,
): OwnRequest {
  const problem = body ? findTemplateProblem(body) : undefined
  if (problem !== undefined) throw invalidField('body', 'invalid_value', problem)
  const isSame = (one: string, name: string) => one.toLowerCase() === name.toLowerCase()
  const kept = Object.entries(isElsewhere ? {} : stored.headers)
  const names = Object.keys(headers ?? stored.headers)
  if (names.length > MAX_HEADERS) throw invalidField('headers', 'too_many', 'Must have at most 10')
  const given = names.map(
    name => [name, headers?.[name] ?? kept.find(([one]) => isSame(one, name))?.[1]] as const,
  )
  const issues = given.flatMap(([name, value], at): Issue[] => {
    const message = names.slice(0, at).some(one => isSame(one, name))
      ? `The header ${name} is repeated`
      : RESERVED.test(name)
        ? `The client itself sets the header ${name}`
        : value === undefined
          ? `Enter the value of ${name}, or remove it${isElsewhere ? ': the URL leads to another server' : ''}`
          : findHeaderProblem(name, value)
    return message ? [{ path: ['headers', name], code: 'invalid_value', message }] : []
  })
  if (issues.length > 0) throw new InvalidRequest(issues)
  const ownBody = body === undefined ? stored.body : body
  return { body: ownBody, headers: Object.fromEntries(given) as OwnRequest['headers'] }
}
