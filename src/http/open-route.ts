/** A GET route outside /v1: it needs no key. */
export interface OpenRoute {
  /** With parameters as `:name`. */
  path: string
  respond(request: Request): Response | Promise<Response>
}
