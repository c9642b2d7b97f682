export type Outcome = 'pass' | 'fail' | 'skip' | 'todo'

/** The output of a process about one test file. */
export interface FileOutput {
  file: string
  tests: { name: string; outcome: Outcome }[]
  lines: string[]
  startedMs: number
  /** Undefined until the next file starts, or the process ends. */
  endedMs: number | undefined
}

const HEADER = /^(test\/\S.*\.tsx?):$/
const RESULT = /^\((pass|fail|skip|todo)\) (.*?)(?: \[[\d.]+m?s\])?$/
/** The list of failures at the end repeats lines of all files. */
const FAILURES = /^\d+ tests? failed:$/
const ASSERTIONS = /^ *(\d+) expect\(\) calls$/
const SUMMARY = /^Ran \d+ tests? across \d+ files?\./

/** Reads the output of `bun test` line by line. */
export interface OutputReader {
  files: FileOutput[]
  /** True when `bun test` has printed its summary: every file has run to its end. */
  isComplete: boolean
  /** The number of assertions in all files. */
  assertions: number
  read(line: string, nowMs: number): void
}

export function createOutputReader(): OutputReader {
  let isOver = false
  const reader: OutputReader = {
    files: [],
    isComplete: false,
    assertions: 0,
    read(line, nowMs) {
      const header = HEADER.exec(line)?.[1]
      const current = reader.files.at(-1)
      if (header !== undefined) {
        if (current) current.endedMs = nowMs
        reader.files.push({
          file: header,
          tests: [],
          lines: [],
          startedMs: nowMs,
          endedMs: undefined,
        })
        return
      }
      if (SUMMARY.test(line)) {
        reader.isComplete = true
        if (current) current.endedMs = nowMs
      }
      reader.assertions += Number(ASSERTIONS.exec(line)?.[1] ?? 0)
      isOver ||= FAILURES.test(line)
      if (isOver) return
      current?.lines.push(line)
      const [, outcome, name = ''] = RESULT.exec(line) ?? []
      if (outcome) current?.tests.push({ name, outcome: outcome as Outcome })
    },
  }
  return reader
}
