import type { ErrorCode, GapReason } from './schema.ts'

/** The texts that the server sends; `project` is the public id. */

export function toHello(epoch: string): string {
  return `{"type":"hello","epoch":"${epoch}"}`
}

export function toSubscribed(project: string, head: number, recovered: boolean): string {
  return `{"type":"subscribed","project":"${project}","head":${head},"recovered":${recovered}}`
}

export function toEventMessage(project: string, seq: number, eventJson: string): string {
  return `{"type":"event","project":"${project}","seq":${seq},"event":${eventJson}}`
}

export function toGone(kind: 'deleted' | 'restored', project: string, seq: number): string {
  return `{"type":"${kind}","project":"${project}","seq":${seq}}`
}

export function toGap(project: string, reason: GapReason, head: number): string {
  return `{"type":"gap","project":"${project}","reason":"${reason}","head":${head}}`
}

export function toHeartbeat(project: string, head: number): string {
  return `{"type":"heartbeat","project":"${project}","head":${head}}`
}

export const IDLE_HEARTBEAT = '{"type":"heartbeat"}'

export function toUnread(project: string): string {
  return `{"type":"unread","project":"${project}"}`
}

/** `project` as the client wrote it. */
export function toErrorMessage(code: ErrorCode, message: string, project?: string): string {
  return JSON.stringify({ type: 'error', code, message, project })
}
