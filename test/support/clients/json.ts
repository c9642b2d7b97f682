import { expect } from 'bun:test'
import type { Answered, TestProject } from '../worlds/project.ts'

export interface JsonSender {
  /** Posts `body` as JSON, word for word. */
  send(body: string | Uint8Array<ArrayBuffer>, path?: string): Promise<Answered>
  /** Posts an event with `json` as its metadata. */
  sendMetadata(json: string): Promise<Answered>
  /** Expects metadata sent as `sent` to be returned as `json`, on creation and on reading. */
  expectKept(sent: string, json?: string): Promise<void>
}

/** Sends JSON that JSON.stringify would not write. */
export function createJsonSender({ request, get }: TestProject): JsonSender {
  function send(body: string | Uint8Array<ArrayBuffer>, path = '/v1/events') {
    const headers = { 'content-type': 'application/json' }
    return request(path, { method: 'POST', body, headers })
  }
  const sendMetadata = (json: string) => send(`{"channelName":"a","title":"t","metadata":${json}}`)
  return {
    send,
    sendMetadata,
    async expectKept(sent, json = sent) {
      const answer = await sendMetadata(sent)
      expect([sent, answer.status]).toEqual([sent, 201])
      expect(toMetadata(answer)).toBe(json)
      expect(toMetadata(await get(`/v1/events/${answer.body.data.id}`))).toBe(json)
    },
  }
}

/** Returns the text of the metadata in an answer. */
function toMetadata({ text }: Answered): string | undefined {
  return /"metadata":(.*),"source"/s.exec(text)?.[1]
}
