/**
 * Why a visit to a provider did not end in a session. The sign-in page explains each:
 * `cancelled` at the provider, `expired` or used state, `unavailable` provider, `invalid` response,
 * `clock` of the two servers too far apart, `unverified` e-mail address, `unknown` person,
 * `otherAccount` or `otherIdentity` connected already, `address` differs from that of the account,
 * `invite` is not open to this address, `groups` not sent, `stale` credential at a verification.
 */
export type ProblemCode =
  | 'cancelled'
  | 'expired'
  | 'unavailable'
  | 'invalid'
  | 'clock'
  | 'unverified'
  | 'unknown'
  | 'otherAccount'
  | 'otherIdentity'
  | 'address'
  | 'invite'
  | 'groups'
  | 'stale'

/** An expected failure of a visit to a provider. */
export class VisitProblem extends Error {
  readonly code: ProblemCode

  constructor(code: ProblemCode) {
    super(code)
    this.name = 'VisitProblem'
    this.code = code
  }
}
