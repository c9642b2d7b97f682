import type { BatchResult } from './batch.ts'

/** A file that has to run once more, alone, and why. */
export interface Rerun {
  file: string
  why: 'failed' | 'crashed' | 'wedged'
  /** The names of the tests that failed. */
  tests: string[]
  lines: string[]
}

/** The results of a process by file. */
export interface Verdict {
  passed: string[]
  reruns: Rerun[]
}

/**
 * Decides which files of a batch have passed. After a crash or a wedge, files that had ended keep
 * their result. The others run once more.
 */
export function judge({ batch, ending, exit, files }: BatchResult): Verdict {
  const passed: string[] = []
  const reruns: Rerun[] = []
  // An error outside of tests belongs to no test, and perhaps to another file.
  const isUnexplained =
    ending === 'complete' && exit !== '0' && exit !== undefined && !files.some(hasFailed)
  for (const file of batch.files) {
    const output = files.findLast(one => one.file === file)
    const tests = (output?.tests ?? []).filter(({ outcome }) => outcome === 'fail')
    const lines = output?.lines ?? []
    const names = tests.map(({ name }) => name)
    if (tests.length > 0 || isUnexplained || (ending === 'complete' && !output)) {
      reruns.push({ file, why: 'failed', tests: names, lines })
    } else if (ending !== 'complete' && output?.endedMs === undefined) {
      reruns.push({ file, why: ending, tests: names, lines })
    } else {
      passed.push(file)
    }
  }
  return { passed, reruns }
}

function hasFailed({ tests }: BatchResult['files'][number]): boolean {
  return tests.some(({ outcome }) => outcome === 'fail')
}
