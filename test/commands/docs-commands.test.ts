import { beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { readSection, readText } from '../support/docs.ts'

const PAGE = 'docs/command-line.md'

/** The help of every command and group of commands, by its words. */
const shown = new Map<string, string>()
/** The help of every command. */
const help = new Map<string, string>()
let printed = ''
const argv = process.argv.slice(0, 2)
beforeAll(async () => {
  const spies = [
    // Nothing runs after the exit, as in a process of its own.
    spyOn(process, 'exit').mockImplementation(code => {
      throw new Error(`Exit code ${code}`)
    }),
    spyOn(console, 'log').mockImplementation(text => (printed += `${text}\n`)),
  ]
  try {
    await read([])
  } finally {
    for (const spy of spies) spy.mockRestore()
    process.argv = argv
  }
})

/** Runs the program here, once for each help: a process takes a hundred times longer. */
async function read(words: string[]): Promise<void> {
  process.argv = [...argv, ...words, '--help']
  printed = ''
  await expect(import(`../../src/main.ts?${words.join('-')}`)).rejects.toThrow('Exit code 0')
  const output = printed
  shown.set(words.join(' '), output)
  const commands = listNames(output, 'COMMANDS')
  if (commands.length === 0) help.set(words.join(' '), output)
  for (const command of commands) await read([...words, command])
}

test('--help of every command and group shows an example', () => {
  expect([...shown.keys()]).toEqual(expect.arrayContaining(['', 'keys', 'keys create', 'serve']))
  for (const [words, output] of shown) {
    expect(output).toContain('EXAMPLES')
    expect(output).toContain(`tidings ${words}`.trimEnd())
  }
})

describe(PAGE, () => {
  test('has a section for every command, and for no other', () => {
    const headings = [...readText(PAGE).matchAll(/^## tidings (.*)$/gm)].map(([, words]) => words)
    expect(headings.toSorted()).toEqual([...help.keys()].toSorted())
  })

  test('names the commands without --data-dir', () => {
    const without = [...help].filter(([, output]) => !output.includes('--data-dir'))
    expect(without.map(([words]) => words).toSorted()).toEqual([
      ...'apply ask demo health identify licences login run send version'.split(' '),
      'webhook verify',
    ])
  })

  test('names every option of every command with its default, and no other', () => {
    for (const [words, output] of help) {
      const section = readSection(PAGE, `tidings ${words}`)
      const rows = [...section.matchAll(/^- (`--[\w-]+`)(?: \((.*?)\))?: /gm)].map(row =>
        row.slice(1),
      )
      const documented = rows.map(([name = '']) => name)
      const options = listOptions(output)
      expect([words, ...documented.toSorted()]).toEqual([words, ...Object.keys(options).toSorted()])
      for (const [name = '', value = ''] of rows) {
        const standard = options[name]
        if (standard !== undefined) expect([words, name, value]).toEqual([words, name, standard])
      }
    }
  })
})

/** Returns the names in one part of the help. */
function listNames(output: string, part: string): string[] {
  return [...readPart(output, part).matchAll(/^ *(\S+) {2,}/gm)].map(([, name = '']) => name)
}

/**
 * Returns the options with their defaults as the page names them. It leaves out those that the page
 * names once for several commands. A default is undefined if the page describes it in words.
 */
function listOptions(output: string): Record<string, string | undefined> {
  const options: Record<string, string | undefined> = {}
  for (const [, name = '', rest = ''] of readPart(output, 'OPTIONS').matchAll(
    /^ *(?:-\w, )?--([\w-]+)(.*)$/gm,
  )) {
    if (['json', 'data-dir', 'notify'].includes(name)) continue
    const [, value] = /\(Default: (.*)\)/.exec(rest) ?? []
    const isRequired = rest.includes('(Required)')
    const isPlain = value !== undefined && value !== 'false' && !value.includes(',')
    options[`\`--${name}\``] = isRequired ? 'required' : isPlain ? `\`${value}\`` : undefined
  }
  return options
}

function readPart(output: string, part: string): string {
  return new RegExp(`^${part}\\n\\n((?: .*\\n)*)`, 'm').exec(output)?.[1] ?? ''
}
