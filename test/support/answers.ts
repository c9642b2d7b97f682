import { expect } from 'bun:test'
import type { RawAnswer } from './clients/raw-http.ts'
import type { Answered } from './worlds/project.ts'

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const RATE_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

type Answer = Answered | RawAnswer

/** Returns the names of the rate limit headers that an answer has. */
export function listRateHeaders({ headers }: Answer): string[] {
  return RATE_HEADERS.filter(name => headers.has(name))
}

/** Expects the error envelope with `status` and `code`, and nothing else in it. */
export function expectFailure(answer: Answer | undefined, status: number, code: string): void {
  expect(answer?.body).toEqual({
    success: false,
    error: expect.any(String),
    code,
    requestId: expect.stringMatching(UUID_V4),
  })
  expect(answer?.status).toBe(status)
  expect(answer?.headers.get('x-request-id')).toBe(answer?.body.requestId)
}

/** Expects a 400 with exactly these issues, each as `path.with.dots code`. */
export function expectIssues(answer: Answer | undefined, ...issues: string[]): void {
  expect(listIssues(answer)).toEqual(issues)
  expect(answer?.body).toEqual({
    success: false,
    error: 'Validation error',
    details: expect.any(Array),
    requestId: expect.stringMatching(UUID_V4),
  })
  expect(answer?.status).toBe(400)
}

/** Returns the issues of a 400, each as `path.with.dots code`; for any other answer its status. */
export function listIssues(answer: Answer | undefined): string[] {
  if (answer?.status !== 400) return [String(answer?.status)]
  const details: { path: string[]; message: string; code: string }[] = answer.body.details
  for (const { path, message } of details) {
    expect(path.every(segment => typeof segment === 'string')).toBe(true)
    expect(message).not.toBe('')
  }
  return details.map(({ path, code }) => `${path.join('.')} ${code}`)
}
