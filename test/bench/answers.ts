import { HOSTILE, measureAnswers, type AnswerName } from '../support/answer-memory.ts'

const REQUESTS = 400

/** Prints the memory of the guarded client while 400 receivers answer, honest or hostile. */
export async function benchAnswers(): Promise<void> {
  console.log('RSS in MB                 before    peak   after')
  const print = async (title: string, names: readonly AnswerName[]) => {
    const { before, peak, after } = await measureAnswers(names, REQUESTS)
    const figures = [before, peak, after].map(figure => String(figure).padStart(8)).join('')
    console.log(`${title.padEnd(24)}${figures}`)
  }
  await print('honest', ['honest'])
  for (const name of HOSTILE) await print(name, [name])
  await print('all hostile ones', HOSTILE)
}
