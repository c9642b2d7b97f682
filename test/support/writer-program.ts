// Writes numbered rows into the embedded Postgres of DATA_DIR, and prints each after its commit, as
// `+ <name>-<number>`. ROWS ends it after that many. Without ROWS, the end of its input does.
import { setTimeout as sleep } from 'node:timers/promises'
import { configureLog } from '../../src/base/log.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { openSql } from './sql.ts'

const { DATA_DIR = '', NAME = '', ROWS } = process.env
const PAUSE_MS = 5

configureLog('warning', process.stdout)
let isOver = false
const print = (line: string) => void process.stdout.write(`${line}\n`)
if (ROWS === undefined) {
  process.stdin.once('end', () => (isOver = true))
  process.stdin.resume()
}
try {
  const embedded = await startEmbedded({ dataDir: DATA_DIR })
  const sql = openSql(embedded.url)
  print(embedded.how)
  let written = 0
  for (let number = 0; !isOver && written < Number(ROWS ?? Infinity); number++) {
    const row = `${NAME}-${number}`
    try {
      await sql`insert into written values (${row})`
      print(`+ ${row}`)
      written++
    } catch {
      // Postgres has ended. The row can be stored all the same, so it is not sent again.
    }
    await sleep(PAUSE_MS)
  }
  await sql.end({ timeout: 0 })
  await embedded.stop()
  print('stopped')
  process.exit(0)
} catch (error) {
  print(`refused ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
