// An HTTP server on loopback for Node and for Bun, each with its own parser. With a folder as
// argument it speaks TLS by the key and certificate there. It prints its port, and then each
// request, as lines of JSON.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'

const folder = process.argv[2]
const tls = folder && {
  key: readFileSync(`${folder}/key.pem`, 'utf8'),
  cert: readFileSync(`${folder}/cert.pem`, 'utf8'),
}
const print = value => process.stdout.write(`${JSON.stringify(value)}\n`)
const report = (method, url, headers, body) =>
  print({ method, path: url, headers, body: Buffer.from(body).toString('base64') })

if (globalThis.Bun) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls && { tls }),
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const headers = Object.fromEntries(request.headers)
      report(request.method, pathname + search, headers, await request.arrayBuffer())
      return new Response('', { status: 201 })
    },
  })
  print({ port: server.port })
} else {
  const respond = (request, response) => {
    const chunks = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      report(request.method, request.url, request.headers, Buffer.concat(chunks))
      response.writeHead(201).end()
    })
  }
  const server = tls ? createTlsServer(tls, respond) : createServer(respond)
  server.listen(0, '127.0.0.1', () => print({ port: server.address().port }))
}
