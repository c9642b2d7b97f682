import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'

const MAX_CHARACTERS = 64 * 1024

export interface HttpResponse {
  status: number
  location: string | undefined
  body: string
}

/**
 * Sends a GET request past any proxy that the environment names, unlike `fetch`. An upgraded connection counts as an
 * answer. Rejects when nothing answers in time.
 */
export function httpGet(
  url: string,
  { timeoutMs, headers = {} }: { timeoutMs: number; headers?: Record<string, string> },
): Promise<HttpResponse> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent: false, signal: AbortSignal.timeout(timeoutMs) })
    const take = (answer: IncomingMessage) => {
      let body = ''
      const finish = () => {
        sent.destroy()
        resolve({ status: answer.statusCode ?? 0, location: answer.headers.location, body })
      }
      answer.setEncoding('utf8')
      answer.on('data', (text: string) => {
        body += text
        if (body.length > MAX_CHARACTERS) finish()
      })
      answer.on('end', finish)
      answer.on('error', reject)
    }
    sent.on('response', take)
    sent.on('upgrade', take)
    sent.on('error', reject)
    sent.end()
  })
}
