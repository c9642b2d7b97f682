// Preloaded with `bun --preload`: adds the milliseconds in the file CLOCK_SHIFT_FILE to Date.
import { readFileSync } from 'node:fs'

const file = process.env['CLOCK_SHIFT_FILE'] ?? ''
let shiftMs = read()
setInterval(() => (shiftMs = read()), 20).unref()

function read(): number {
  return Number(readFileSync(file, 'utf8'))
}

const RealDate = Date
const now = () => RealDate.now() + shiftMs
globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, maker) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given, maker) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (target, name, receiver) =>
    name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown),
})
