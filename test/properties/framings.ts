import fc, { type Arbitrary } from 'fast-check'
import { toMessage } from './world.ts'

/** A way to send a request, or malformed bytes, over a connection. */
export interface Framing {
  name: string
  /** True if the request stays as valid as before. */
  isWhole?: boolean
  apply(head: Buffer, body: Buffer, edit: (bytes: Buffer) => Buffer): Uint8Array[]
}

/** Returns the head with other header lines for the length of the body. */
const sized =
  (...lines: string[]) =>
  (head: Buffer, body: Buffer) => [
    Buffer.from(
      head
        .toString('latin1')
        .replace(/Content-Length: .*\r\n/, '')
        .replace(/\r\n\r\n$/, `\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`),
      'latin1',
    ),
    body,
  ]
const chunked = (frame: (body: Buffer) => string) => (head: Buffer, body: Buffer) => {
  const [first] = sized('Transfer-Encoding: chunked')(head, body)
  return [first!, Buffer.from(frame(body), 'latin1')]
}
const chunk = (bytes: Buffer) => `${bytes.length.toString(16)}\r\n${bytes.toString('latin1')}\r\n`

const FRAMINGS: Framing[] = [
  {
    name: 'in pieces',
    isWhole: true,
    apply: (head, body) => [
      head.subarray(0, 7),
      head.subarray(7),
      body.subarray(0, 3),
      body.subarray(3),
    ],
  },
  { name: 'bytes of the head', apply: (head, body, edit) => [edit(head), body] },
  { name: 'half a head', apply: head => [head.subarray(0, head.length / 2)] },
  { name: 'no Host', apply: (head, body) => [cut(head, 'Host: localhost\r\n'), body] },
  { name: 'two lengths', apply: sized('Content-Length: 5', 'Content-Length: 6') },
  { name: 'less than there is', apply: sized('Content-Length: 1') },
  { name: 'more than there is', apply: sized('Content-Length: 99999') },
  { name: 'more than any', apply: sized('Content-Length: 99999999999999999999') },
  { name: 'a negative length', apply: sized('Content-Length: -1') },
  { name: 'a hexadecimal length', apply: sized('Content-Length: 0x10') },
  { name: 'a length and chunks', apply: sized('Content-Length: 4', 'Transfer-Encoding: chunked') },
  { name: 'an unknown coding', apply: sized('Transfer-Encoding: gzip, chunked') },
  {
    name: 'chunks',
    isWhole: true,
    apply: (head, body) =>
      body.length === 0
        ? [head]
        : chunked(
            bytes =>
              `${chunk(bytes.subarray(0, 1))}${bytes.length > 1 ? chunk(bytes.subarray(1)) : ''}0\r\n\r\n`,
          )(head, body),
  },
  { name: 'chunks without end', apply: chunked(chunk) },
  {
    name: 'chunks of another size',
    apply: chunked(body => `7\r\n${body.toString('latin1')}\r\n0\r\n\r\n`),
  },
  {
    name: 'chunks of no size',
    apply: chunked(body => `zz\r\n${body.toString('latin1')}\r\n0\r\n\r\n`),
  },
  { name: 'half a body', apply: (head, body) => [head, body.subarray(0, body.length / 2)] },
  {
    name: 'a long head',
    apply: (head, body) => [...sized(`X: ${'x'.repeat(40_000)}`)(head, body)],
  },
  { name: 'not HTTP', apply: () => [Buffer.from('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03')] },
  { name: 'HTTP/2', apply: () => [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')] },
  {
    name: 'an unknown method',
    apply: () => [toMessage('BREW / HTTP/1.1', [['Host', 'localhost']])],
  },
]
export const framing: Arbitrary<Framing> = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...FRAMINGS) },
  { weight: 1, arbitrary: fc.constant(FRAMINGS[1]!) },
)

function cut(bytes: Buffer, text: string): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(text, ''), 'latin1')
}
