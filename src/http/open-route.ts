/** A GET route outside /v1: it needs no key. */
export interface OpenRoute {
  /** Exact, without parameters. */
  path: string
  respond(request: Request): Response | Promise<Response>
}
