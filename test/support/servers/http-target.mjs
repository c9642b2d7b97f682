// An HTTP server on loopback for Node, with its own parser. It prints its port, and then each
// request, as lines of JSON.
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'

const print = value => process.stdout.write(`${JSON.stringify(value)}\n`)
const server = createServer(async (request, response) => {
  const { method, url: path, headers } = request
  print({ method, path, headers, body: (await buffer(request)).toString('base64') })
  response.writeHead(201).end()
})
server.listen(0, '127.0.0.1', () => print({ port: server.address().port }))
