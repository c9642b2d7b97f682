import { readFileSync } from 'node:fs'
import { MIN_PASSPHRASE } from '../backup/passphrase.ts'
import { UsageError } from './command.ts'

const NAME = 'BACKUP_PASSPHRASE'
const LINE_END = /\r?\n$/
const [INTERRUPT, END, ERASE] = ['\u0003', '\u0004', '\u007f']

/** The passphrase of a backup: from BACKUP_PASSPHRASE or the file in BACKUP_PASSPHRASE_FILE, else a person is asked. */
export async function readPassphrase({ isNew }: { isNew: boolean }): Promise<string> {
  const passphrase = findConfigured() ?? (await ask('Passphrase of the backup: '))
  if ([...passphrase].length < MIN_PASSPHRASE) {
    throw new UsageError(`The passphrase must have ${MIN_PASSPHRASE} characters or more.`)
  }
  const isTyped = findConfigured() === undefined
  if (isNew && isTyped && (await ask('Once more: ')) !== passphrase) {
    throw new UsageError('Those were two different passphrases.')
  }
  return passphrase
}

function findConfigured(): string | undefined {
  const { [NAME]: passphrase, [`${NAME}_FILE`]: file } = process.env
  if (passphrase && file) throw new UsageError(`${NAME} and ${NAME}_FILE are both set: keep one`)
  if (!file) return passphrase || undefined
  try {
    return readFileSync(file, 'utf8').replace(LINE_END, '')
  } catch {
    throw new UsageError(`${NAME}_FILE must name a file that can be read: it is ${file}`)
  }
}

/** Asks at the terminal, without showing what is typed. */
async function ask(question: string): Promise<string> {
  const { stdin, stderr } = process
  if (!stdin.isTTY) throw new UsageError(`Set ${NAME} or ${NAME}_FILE, or run it at a terminal.`)
  stderr.write(question)
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  stdin.resume()
  try {
    return await new Promise((resolve, reject) => {
      let typed: string[] = []
      const take = (text: string) => {
        for (const key of text) {
          if (key === INTERRUPT) return finish(() => reject(new Error('Interrupted')))
          if (key === '\r' || key === '\n' || key === END)
            return finish(() => resolve(typed.join('')))
          if (key === ERASE) typed = typed.slice(0, -1)
          else typed.push(key)
        }
      }
      const finish = (settle: () => void) => {
        stdin.off('data', take)
        settle()
      }
      stdin.on('data', take)
    })
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}
