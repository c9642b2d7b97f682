/** A GET route outside /v1: it needs no key. */
export interface OpenRoute {
  /** With parameters as `:name`; `*` is what a browser is shown where there is no page. */
  path: string
  respond(request: Request): Response | Promise<Response>
}
