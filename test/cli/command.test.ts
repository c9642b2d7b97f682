import { expect, test } from 'bun:test'
import { protectText } from '../../src/cli/command.ts'
import { send } from '../../src/cli/send.ts'

// Words are separated by |.
test.each([
  ['-5 % today|--channel|x', '--channel=x|--|-5 % today'],
  ['--- FAIL: x|--channel=x', '--channel=x|--|--- FAIL: x'],
  ['--channel|x|-5', '--channel=x|--|-5'],
  ['-|--channel|x', '--channel=x|--|-'],
  ['--two words|-x y', '--|--two words|-x y'],
  ['Hi|--description|- one\n- two', '--description=- one\n- two|--|Hi'],
  ['Hi|--description|--no- x', '--description=--no- x|--|Hi'],
  ['Hi|--description|-', '--description=-|--|Hi'],
  ['--no-notify|Hi|--json', '--no-notify|--json|--|Hi'],
  ['--fail|--channel|x', '--fail|--channel=x|--'],
  ['--channel|x|--|--fail|--', '--channel=x|--|--fail|--'],
])('the words %j are parsed as %j', (words, parsed) => {
  const known = send.args as Parameters<typeof protectText>[1]
  expect(protectText(words.split('|'), known)).toEqual(parsed.split('|'))
})

test.each([[['Hi', '--channel']], [['Hi', '--description', '--channel', 'x']]])(
  'the words %j lack a value',
  words => {
    const known = send.args as Parameters<typeof protectText>[1]
    expect(() => protectText(words, known)).toThrow(/^The option --\w+ needs a value\. /)
  },
)
