// parse-server, the reference for ingest and feed: `node parse-server.mjs <database url> [live]`.
// It prints READY and its port. With `live` it has a LiveQuery server, and each line of input is a
// number of objects to create without HTTP. JavaScript, because parse-server's package requires
// Node. package.json pins express's router to 2.2: parse-server 9.10 uses its internals, and 2.3
// breaks requests inside the process.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

// Express recommends the first setting. The other one prevents a folder of logs in the working
// directory at import.
process.env.NODE_ENV = 'production'
process.env.PARSE_SERVER_LOGS_FOLDER = 'null'
const { default: Parse } = await import('parse/node')
const { ParseServer } = (await import('parse-server')).default
const [databaseUrl, mode] = process.argv.slice(2)
const isLive = mode === 'live'

const http = createServer()
await new Promise(resolve => http.listen(0, '127.0.0.1', resolve))
const { port } = http.address()

// The settings that its documentation recommends for speed; all others keep their defaults. See
// parseplatform.org/parse-server/api/master/ParseServerOptions.html, and the guide at
// docs.parseplatform.org/parse-server/guide.
const server = new ParseServer({
  appId: 'bench',
  masterKey: 'bench-master',
  // Guide, "Keys": with a REST key requests without it are refused, as Tidings refuses those
  // without a key.
  restAPIKey: 'bench-rest',
  serverURL: `http://127.0.0.1:${port}`,
  // Guide, "Database": the pool size is part of the address. As many connections as INSERT + NOTIFY
  // has.
  databaseURI: `${databaseUrl}&poolSize=16`,
  databaseOptions: {
    // parse-server does not read the folder of the Unix socket from the address.
    host: new URL(databaseUrl).searchParams.get('host'),
    // DatabaseOptions: needed for several instances on one database only. Here the schema cache
    // never changes.
    enableSchemaHooks: false,
  },
  // ParseServerOptions: requests inside the process skip HTTP; here, the objects for LiveQuery.
  directAccess: true,
  // ParseServerOptions: requests create no classes; the class exists beforehand.
  allowClientClassCreation: false,
  // Guide, "Database": set the schema up while tables are empty, as each change is ALTER TABLE.
  schema: {
    definitions: [
      {
        className: 'Event',
        fields: {
          channelName: { type: 'String', required: true },
          title: { type: 'String', required: true },
          description: { type: 'String' },
          icon: { type: 'String' },
          tags: { type: 'Array' },
          metadata: { type: 'Object' },
          userId: { type: 'String' },
          timestamp: { type: 'Date' },
          source: { type: 'String', defaultValue: 'api' },
          notify: { type: 'Boolean', defaultValue: true },
        },
        // Guide, "Database": index the fields that are read. Tidings has an index for every filter,
        // this one for the newest page alone.
        indexes: { newest: { createdAt: -1 } },
        // Open to every client with the key; but no client adds columns.
        classLevelPermissions: {
          create: { '*': true },
          find: { '*': true },
          get: { '*': true },
          count: { '*': true },
          addField: {},
        },
      },
    ],
    lockSchemas: true,
  },
  // ParseServerOptions: no log files, nothing on the console, and only errors are logged.
  logsFolder: null,
  silent: true,
  logLevel: 'error',
  // Unmeasured features are disabled.
  enableAnonymousUsers: false,
  ...(isLive ? { liveQuery: { classNames: ['Event'] } } : {}),
})
await server.start()
http.on('request', server.app)
// Guide, "Live Queries": in the process of the server is simplest; between processes it needs
// Redis.
if (isLive) await ParseServer.createLiveQueryServer(http, {}, server.config)
console.log(`READY ${port}`)

const CONTENT = {
  channelName: 'bench',
  title: 'New payment',
  description: 'A customer paid for a plan',
  icon: '💰',
  tags: ['billing', 'plan'],
  metadata: { amount: 42, plan: 'pro', currency: 'EUR' },
  userId: 'user_1',
}
if (isLive)
  for await (const line of createInterface({ input: process.stdin }))
    await Parse.Object.saveAll(
      Array.from({ length: Number(line) }, () => new Parse.Object('Event', CONTENT)),
    )
