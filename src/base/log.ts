import { inspect } from 'node:util'
import { configureSync, getLogger, getTextFormatter, jsonLinesFormatter } from '@logtape/logtape'
import type { Logger, LogLevel, LogRecord } from '@logtape/logtape'
import { replaceDisruptive } from './display-text.ts'

export type Log = Logger
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error'] as const
export const LOG_FORMATS = ['json', 'text'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** Options of `inspect`: all in one line. */
const LINE = { breakLength: Infinity, compact: true }

let lowestLevel: LogLevel = 'info'

/**
 * Returns true when `debug` lines are logged. Building a line per request costs more than this
 * check.
 */
export function isDebugging(): boolean {
  return lowestLevel === 'debug'
}

/** The stream that gets the log, for example `process.stdout`. */
interface LogStream {
  /** True on a terminal. */
  isTTY?: boolean
  write(line: string): unknown
  on?(event: 'error', listener: () => void): unknown
}

const toText = getTextFormatter({
  timestamp: 'time',
  level: 'full',
  category: ([, ...part]) => part.join('.'),
  format: ({ timestamp, level, category, message, record }) =>
    `${timestamp} ${level} ${category}: ${message}${toDetails(record)}`,
})

/** Returns the properties that a message does not name. A stack is on lines of its own. */
function toDetails({ rawMessage, properties }: LogRecord): string {
  const unnamed = Object.entries(properties).filter(
    ([name, value]) => value !== undefined && !rawMessage.includes(`{${name}}`),
  )
  const isStack = ([name]: [string, unknown]) => name === 'stack'
  const pairs = unnamed.filter(entry => !isStack(entry))
  const frames = unnamed.filter(isStack).flatMap(([, stack]) => String(stack).split('\n'))
  return [
    ...pairs.map(([name, value]) => ` ${name}=${toWord(value)}`),
    ...frames.map(frame => `\n    ${replaceDisruptive(frame.trim(), '?')}`),
  ].join('')
}

/** Returns a value as one line. Quotes are left out where a reader needs none. */
function toWord(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/@-]+$/.test(value) ? value : inspect(value, LINE)
}

/**
 * Writes log lines of `level` and above to `stream`: each a JSON object, or a text to read. The
 * default is text on a terminal, and JSON elsewhere. Call it once.
 */
export function configureLog(
  level: LogLevel,
  stream: LogStream,
  format: LogFormat = stream.isTTY ? 'text' : 'json',
): void {
  lowestLevel = level
  // A full disk, or a reader that has ended, costs lines and not the program.
  stream.on?.('error', () => {})
  const toLine = format === 'text' ? toText : jsonLinesFormatter
  configureSync({
    reset: true,
    sinks: { lines: (record: LogRecord) => void stream.write(toLine(record)) },
    loggers: [
      { category: 'tidings', lowestLevel: level, sinks: ['lines'] },
      { category: ['logtape', 'meta'], lowestLevel: 'error', sinks: ['lines'] },
    ],
  })
}

/** Returns the logger of one part of the server, usually a folder: `logger('db')`. */
export function logger(part: string): Log {
  return getLogger(['tidings', part])
}

const LIMIT_MS = 1_000
/** The number of reasons that are counted apart. */
const MAX_REASONS = 100

/**
 * Limits the lines about one reason to two in `limitMs`. `write` gets the first one at once, with a
 * count of 1. At the end of that time it gets the count of all, if there were more. Both have the
 * details of the first one.
 */
export function limitLines<Details = void>(
  write: (reason: string, count: number, details: Details) => void,
  limitMs = LIMIT_MS,
): (reason: string, details: Details) => void {
  const counts = new Map<string, number>()
  return (given, details) => {
    const reason = counts.size < MAX_REASONS || counts.has(given) ? given : 'several reasons'
    const count = (counts.get(reason) ?? 0) + 1
    counts.set(reason, count)
    if (count > 1) return
    write(reason, 1, details)
    setTimeout(() => {
      const all = counts.get(reason) ?? 0
      counts.delete(reason)
      if (all > 1) write(reason, all, details)
    }, limitMs).unref()
  }
}
