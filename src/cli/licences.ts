import { readBuiltText } from './built-text.ts'
import { command } from './command.ts'

export const licences = command({
  name: 'licences',
  description: 'Print the licence of Tidings, and the licences of the parts of others inside.',
  examples: ['tidings licences | less'],
  args: {},
  async run() {
    const text = await readBuiltText('.licences.txt')
    return { json: { text }, text: text.trimEnd() }
  },
})
