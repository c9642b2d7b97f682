import { expect, test } from 'bun:test'
import type { VNode } from 'preact'
import { LinkedText } from '../../../../src/dashboard/app/components/linked-text.tsx'

/** Lists the addresses of a text that become links. */
function listLinks(text: string): unknown[] {
  const { children } = LinkedText({ text }).props as { children: [(VNode<any> | string)[], string] }
  return children[0].flatMap(part => (typeof part === 'string' ? [] : part.props.href))
}

test('the punctuation of the sentence is not part of an address', () => {
  expect(
    listLinks('See https://a.example/x. (Or “http://b.example/y?z=1!”) https://c.example'),
  ).toEqual(['https://a.example/x', 'http://b.example/y?z=1', 'https://c.example'])
})

test('an address of more than 2,000 characters is no link, and much punctuation is read at once', () => {
  const long = `https://a.example/${'x'.repeat(1_982)}`
  expect(listLinks(`${long} ${long}x https://b.example`)).toEqual([long, 'https://b.example'])
  expect(listLinks(`https://${'.'.repeat(250_000)}a`)).toEqual([])
  const many = `https://a.example/${'.'.repeat(1_900)}x `
  expect(listLinks(many.repeat(100))).toHaveLength(100)
})
