// parse-server, with which ingest and feed are compared: `node parse-server.mjs <database url> [live]`. It says READY and its port.
// With `live` it has a LiveQuery server, and each line of input is how many objects it creates, without HTTP.
// JavaScript, because it runs on Node: that is what parse-server's package names as its engine. package.json holds express's
// router at 2.2: parse-server 9.10 reaches into it, and from 2.3 on finds no route for requests inside the process.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

// Express asks for this. The other keeps it from making a folder of logs where it stands, before it has its settings.
process.env.NODE_ENV = 'production'
process.env.PARSE_SERVER_LOGS_FOLDER = 'null'
const { default: Parse } = await import('parse/node')
const { ParseServer } = (await import('parse-server')).default
const [databaseUrl, mode] = process.argv.slice(2)
const isLive = mode === 'live'

const http = createServer()
await new Promise(resolve => http.listen(0, '127.0.0.1', resolve))
const { port } = http.address()

// The settings that its documentation (parseplatform.org/parse-server/api/master/ParseServerOptions.html, and the guide at
// docs.parseplatform.org/parse-server/guide) has for speed; what is not here keeps its default.
const server = new ParseServer({
  appId: 'bench',
  masterKey: 'bench-master',
  // Guide, «Keys»: with a REST key of its own, requests without it are refused, as Tidings refuses those without a key.
  restAPIKey: 'bench-rest',
  serverURL: `http://127.0.0.1:${port}`,
  // Guide, «Database»: the size of the pool goes into the address. As many connections as INSERT + NOTIFY has.
  databaseURI: `${databaseUrl}?poolSize=16`,
  databaseOptions: {
    // DatabaseOptions: for several instances on one database only. Here the cache of the schema is right for ever.
    enableSchemaHooks: false,
  },
  // ParseServerOptions: requests inside the process go without HTTP; here, the objects that LiveQuery tells of.
  directAccess: true,
  // ParseServerOptions: no class comes with a request; it is made beforehand.
  allowClientClassCreation: false,
  // Guide, «Database»: set the schema up while tables are empty, as each change is ALTER TABLE.
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
        // Guide, «Database»: index what is read; the newest page alone, where Tidings keeps an index for every filter.
        indexes: { newest: { createdAt: -1 } },
        // Open to whoever has the key; but no client adds columns.
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
  // ParseServerOptions: no file, nothing on the console, and of the log errors alone.
  logsFolder: null,
  silent: true,
  logLevel: 'error',
  // What is not measured is not on.
  enableAnonymousUsers: false,
  ...(isLive ? { liveQuery: { classNames: ['Event'] } } : {}),
})
await server.start()
http.on('request', server.app)
// Guide, «Live Queries»: in the process of the server is the easiest; between processes it would take Redis.
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
