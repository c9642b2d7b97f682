const [INTERRUPT, END, ERASE] = ['\u0003', '\u0004', '\u007f']

/**
 * Asks at the terminal, without an echo of the typed characters. Standard input must be a terminal.
 * Rejects when Ctrl+C is pressed.
 */
export async function askHidden(question: string): Promise<string> {
  const { stdin, stderr } = process
  stderr.write(question)
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  stdin.resume()
  try {
    return await new Promise((resolve, reject) => {
      let typed: string[] = []
      const take = (text: string) => {
        for (const key of text) {
          if (key === INTERRUPT) return finish(() => reject(new Error('Interrupted.')))
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
