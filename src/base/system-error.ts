const FEW_FILES =
  'Too many files are open. Raise the limit: `ulimit -n 65536` in a shell, LimitNOFILE in systemd, `--ulimit nofile=65536` in Docker.'

/**
 * Explains an error of the operating system about a file, a folder or a program in a sentence, with
 * a remedy. Returns undefined for other errors. `shown` is named in place of the error's own path.
 */
export function explainSystemError(error: unknown, shown?: string): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code = '', syscall = '', ...more } = error as NodeJS.ErrnoException & { dest?: string }
  if (isOutOfFiles(error)) return FEW_FILES
  const path = shown ?? more.dest ?? more.path
  if (path !== undefined) return explainPath(code, shorten(path), syscall)
  // A write to an open file has no path.
  return syscall === 'write' || syscall === 'fsync'
    ? explainPath(code, 'the data folder', syscall)
    : undefined
}

/** Explains the end of a program of Postgres by the texts of the C library in its output. */
export function explainOutput(output: string, folder: string): string | undefined {
  if (/insufficient file descriptors|Too many open files/.test(output)) return FEW_FILES
  const [, code] = CODES.find(([text]) => output.includes(text)) ?? []
  return code === undefined ? undefined : explainPath(code, folder, 'mmap')
}

const CODES = [
  ['No space left on device', 'ENOSPC'],
  ['Disk quota exceeded', 'EDQUOT'],
  ['Read-only file system', 'EROFS'],
  ['Input/output error', 'EIO'],
  ['Permission denied', 'EACCES'],
  ['Operation not permitted', 'EPERM'],
  ['Cannot allocate memory', 'ENOMEM'],
  ['Resource temporarily unavailable', 'EAGAIN'],
] as const

/** Returns whether this process, or the system, can open no more files and connections. */
export function isOutOfFiles(error: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

/** Returns whether a started program was ended by its time limit. */
export function isTimeOut(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT'
}

function explainPath(code: string, path: string, syscall: string): string | undefined {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `This user may not use ${path}. Run the command as the user of the server, or make this user its owner.`
    case 'EROFS':
      return `${path} is on a read-only disk. Mount the disk writable, or choose another folder.`
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk of ${path} is full, or its quota is used up. Free some space, and try again.`
    case 'EIO':
      return `The disk of ${path} cannot be read or written. Check the disk and the log of the system.`
    case 'ESTALE':
      return `The network disk of ${path} has lost it. Mount the disk again.`
    case 'ENOENT':
      return `${path} does not exist, or its folder does not. Create the folder, or correct the path.`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${path} is a file, or leads through one, where a folder is needed. Choose another path.`
    case 'EISDIR':
      return `${path} is a folder, where a file is needed. Choose another path.`
    case 'ELOOP':
      return `The links of ${path} lead in a circle. Correct them.`
    case 'ENAMETOOLONG':
      return `The path ${path} is too long. Choose a shorter one.`
    case 'ENOTSUP':
    case 'EOPNOTSUPP':
    case 'ENOSYS':
    case 'EINVAL':
      return `The disk of ${path} does not support "${syscall}". Choose a folder on a local disk.`
    case 'EBUSY':
    case 'ETXTBSY':
      return `Another program uses ${path}. Stop it, and try again.`
    case 'ENOMEM':
    case 'EAGAIN':
      return `The system has no memory or no processes left for ${path}. Stop other programs, or raise the limits.`
    case 'ENOEXEC':
      return `${path} is for another kind of processor. Install Tidings for this machine.`
    default:
      return undefined
  }
}

const MAX_SHOWN = 200

function shorten(path: string): string {
  return path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path
}
