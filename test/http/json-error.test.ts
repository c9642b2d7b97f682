import { expect, test } from 'bun:test'
import { explainJson } from '../../src/http/json-error.ts'

test.each([
  ['{"a":1,}', 'unexpected } in line 1, character 8'],
  ['{\n  "title": "x"\r\n  "b": 1}', 'unexpected " in line 3, character 3'],
  ['{"a":"x\ny"}', 'unexpected invisible character in line 1, character 8'],
  ['{"a":tru}', 'unexpected t in line 1, character 6'],
  ['{"a":01}', 'unexpected 0 in line 1, character 6'],
  ['{"a":"\\x"}', 'unexpected \\ in line 1, character 7'],
  ["{'a':1}", "unexpected ' in line 1, character 2"],
  ['{"a":1}}', 'unexpected } in line 1, character 8'],
  ['{"a" 1}', 'unexpected 1 in line 1, character 6'],
  ['[1,]', 'unexpected ] in line 1, character 4'],
  ['{"a":["b" "c"]}', 'unexpected " in line 1, character 11'],
  ['{"😀":😀}', 'unexpected 😀 in line 1, character 7'],
  ['\u00a0{}', 'unexpected invisible character in line 1, character 1'],
  ['{"password":"secret', 'it ends too early, in line 1, character 20'],
  ['{"a":{', 'it ends too early, in line 1, character 7'],
])('%j is not JSON: %s', (text, explanation) => {
  expect(explainJson(text)).toBe(explanation)
})

test('JSON is read to its end, and a change of one character is found no later than it matters', () => {
  const text = JSON.stringify({ a: [1, -2.5e3, { 'b"\\': 'x\n', c: null }], d: true, e: {}, f: [] })
  const end = `character ${text.length + 1}`
  expect(explainJson(text)).toEndWith(end)
  for (let at = 0; at < text.length; at++) {
    for (const other of ['', ',', '}', ']', '"', ':', '\\', 'x', '1']) {
      const changed = text.slice(0, at) + other + text.slice(at + 1)
      const isValid = canParse(changed)
      const explanation = explainJson(changed)
      if (isValid) expect(explanation).toEndWith(`character ${changed.length + 1}`)
      else expect(Number(/\d+$/.exec(explanation))).toBeGreaterThan(0)
    }
  }
})

function canParse(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
