import { configureLog } from '../log.ts'
import { startServer, type Server } from '../server.ts'
import { VERSION } from '../version.ts'
import { command } from './command.ts'
import { readConfig } from './environment.ts'

export const serve = command({
  name: 'serve',
  description: 'Run the server. It starts its own Postgres in DATA_DIR unless DATABASE_URL is set.',
  examples: [
    'tidings serve',
    'PORT=8080 BASE_URL=https://tidings.example.com tidings serve',
    'DATABASE_URL=postgres://tidings:secret@db/tidings tidings serve',
  ],
  args: {},
  async run() {
    const config = readConfig()
    configureLog(config.logLevel, line => process.stdout.write(line))
    // From the beginning: a signal during the start stops the server as soon as it stands.
    const stopping = untilSignal()
    const server = await startServer(config)
    process.stderr.write(toGreeting(server))
    await stopping
    // A second signal does not wait.
    void untilSignal().then(() => process.exit(1))
    await server.stop()
    process.exit(0)
  },
})

/** What a person sees at the start; the log goes to standard output. */
function toGreeting({ url, firstKey }: Server): string {
  const line = `\nTidings ${VERSION} is running: ${url}   (API reference: ${url}/docs)\n`
  if (firstKey === undefined) return `${line}\n`
  return `${line}
Your first API key is shown here once. Send your first event:

  curl ${url}/v1/events \\
    -H 'Authorization: Bearer ${firstKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"channelName": "payments", "title": "New payment", "icon": "💰"}'

`
}

function untilSignal(): Promise<void> {
  return new Promise(resolve => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
}
