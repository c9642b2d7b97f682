import { expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { withSharedServer } from '../../support/servers/server.ts'
import { makeFolder } from '../../support/scratch.ts'
import { newProject } from '../../support/worlds/project.ts'

const server = withSharedServer()

/**
 * The scenarios for what `/mcp` has. The others call tools, prompts and resources of the suite's
 * own server. One is about servers without authentication.
 */
const SCENARIOS = ['server-initialize', 'ping', 'tools-list']

test('the conformance suite of the protocol passes', async () => {
  const { key } = await newProject(server)
  // The suite knows no keys.
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: request => {
      const to = new Request(`${server.url}/mcp`, request)
      to.headers.set('authorization', `Bearer ${key}`)
      return fetch(to)
    },
  })
  const env = { ...process.env, TMPDIR: makeFolder() }
  try {
    for (const scenario of SCENARIOS) {
      const words = ['x', '@modelcontextprotocol/conformance@0.1.16', 'server']
      const all = [...words, '--url', `${proxy.url}mcp`, '--scenario', scenario]
      // It runs on Bun, whose exit code is 1 for a failed check.
      const { code, text } = await new Promise<{ code: unknown; text: string }>(resolve =>
        execFile(process.execPath, ['--bun', ...all], { env }, (error, stdout, stderr) =>
          resolve({ code: error?.code ?? 0, text: `${scenario}\n${stdout}${stderr}` }),
        ),
      )
      expect({ code, text }).toEqual({ code: 0, text: expect.any(String) })
    }
  } finally {
    await proxy.stop(true)
  }
})
