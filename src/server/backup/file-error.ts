import { dirname } from 'node:path'

/** Returns an error that explains why a file of a backup cannot be used. Returns others as is. */
export function explainFileError(error: unknown, file: string): unknown {
  const { code = '', syscall } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  const text = syscall === undefined ? undefined : toText(code, file)
  return text === undefined ? error : new Error(text, { cause: error })
}

function toText(code: string, file: string): string | undefined {
  switch (code) {
    case 'ENOENT':
      return `${file} does not exist, or its folder does not. Correct the path.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `This user may not use ${file}. Change the permissions of ${dirname(file)}.`
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk of ${dirname(file)} is full. Free some space, and try again.`
    case 'EISDIR':
      return `${file} is a folder. Name a file.`
    case 'EEXIST':
      return `${file} exists. Choose another name, or replace it with --force.`
    default:
      return undefined
  }
}
