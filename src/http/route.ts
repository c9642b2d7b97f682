/** A route of the server, as the application mounts it. */
export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters as `:name`. */
  path: string
  respond(request: Request): Promise<Response>
}
