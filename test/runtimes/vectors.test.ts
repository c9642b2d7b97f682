import { expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { findDeno } from '../support/servers/process.ts'
import { RFC8188, RFC8291, RFC8292, STANDARD_WEBHOOKS } from '../support/vectors.ts'
import { SCRATCH } from '../support/scratch.ts'

const PROGRAM = join(import.meta.dir, '../support/vectors-program.ts')
const COMPILED = join(SCRATCH, `vectors-${process.pid}`)

const run = {
  bun: () => execFileSync(process.execPath, [PROGRAM]),
  deno: () => execFileSync(findDeno(), ['run', '-A', '--no-check', PROGRAM]),
  'an executable': () => {
    try {
      const args = ['build', '--compile', '--minify', '--outfile', COMPILED, PROGRAM]
      execFileSync(process.execPath, args)
      return execFileSync(COMPILED, { env: {} })
    } finally {
      rmSync(COMPILED, { force: true })
    }
  },
}

test.each(Object.entries(run))(
  'RFC 8188, 8291, 8292 and Standard Webhooks: the official vectors match, and passkeys verify, on %s',
  (_, start) => {
    const { plaintext, ecdh, ikm, cek, nonce, body, server } = RFC8291
    expect(JSON.parse(String(start()))).toEqual({
      rfc8188: RFC8188.map(({ text, records }) => ({ text, records })),
      rfc8291: {
        text: plaintext,
        records: 1,
        intermediates: { ecdh, ikm, cek, nonce },
        encrypted: body,
      },
      passkey: 1,
      rfc8292: [
        { key: RFC8292.key, claims: RFC8292.claims },
        { key: server.publicKey, claims: RFC8292.claims },
      ],
      standardWebhooks: STANDARD_WEBHOOKS.map(({ signature }) => ({ signature, isGenuine: true })),
    })
  },
)
