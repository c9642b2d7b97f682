import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'

const MAX_CHARACTERS = 64 * 1024

export interface HttpResponse {
  status: number
  location: string | undefined
  body: string
}

/**
 * Sends a GET request. Unlike `fetch`, it ignores proxies of the environment. A 101 response counts
 * as a response. Reads at most 64 Ki characters of the body. Rejects if no response arrives within
 * `timeoutMs`.
 */
export function httpGet(
  url: string,
  { timeoutMs, headers = {} }: { timeoutMs: number; headers?: Record<string, string> },
): Promise<HttpResponse> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent: false, signal: AbortSignal.timeout(timeoutMs) })
    const receive = (response: IncomingMessage) => {
      let body = ''
      const finish = () => {
        sent.destroy()
        resolve({ status: response.statusCode ?? 0, location: response.headers.location, body })
      }
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        body += text
        if (body.length > MAX_CHARACTERS) finish()
      })
      response.on('end', finish)
      response.on('error', reject)
    }
    sent.on('response', receive)
    sent.on('upgrade', receive)
    sent.on('error', reject)
    sent.end()
  })
}
