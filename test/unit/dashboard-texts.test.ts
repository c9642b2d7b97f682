import { expect, test } from 'bun:test'
import { findTexts, listUntranslated } from '../support/untranslated.ts'

/** The documentation is in English, and so are its scripts. */
const ENGLISH = ['docs/']
test('every text of the dashboard is a message of the catalogue', () => {
  expect(listUntranslated(ENGLISH)).toEqual([])
})

test.each([
  ['<p>Hello <b>{name}</b></p>', 'Hello'],
  ['<p>{isOn ? "Turned on" : t("app.off")}</p>', 'Turned on'],
  ['<input placeholder="Name" />', 'Name'],
  ['<Field hint={`At least ${length}`} />', 'At least …'],
  ['showToast({ message: "Saved" })', 'Saved'],
  ['"The server is busy."', 'The server is busy.'],
])('a text that is no message is found in %p', (source, text) => {
  expect(findTexts('page.tsx', `const x = ${source}`)).toEqual([`page.tsx:1 ${text}`])
})

test.each([
  '<p class="row fresh">{t("app.reload")}</p>',
  '<code>POST /v1/events</code>',
  '<img alt="" src="/assets/tidings.svg" />',
  '<Field name="Ada" label={t("app.reload")} />',
  'new Error("No tab is open")',
])('no text is found in %p', source => {
  expect(findTexts('page.tsx', `const x = ${source}`)).toEqual([])
})
