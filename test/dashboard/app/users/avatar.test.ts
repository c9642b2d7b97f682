import { describe, expect, test } from 'bun:test'
import { toColour, toInitials } from '../../../../src/dashboard/app/users/avatar.tsx'

describe('the avatar of a user', () => {
  test.each([
    ['Ada Lovelace', 'AL'],
    ['ada', 'A'],
    ['  Ada   King  of Lovelace ', 'AL'],
    ["Conan O'Brien", 'CO'],
    ['Anne Smith-Jones', 'AS'],
    ['(Bob) "The Builder"', 'BB'],
    ['🚀 Rocket Man', 'RM'],
    ['🚀', '🚀'],
    ['👩‍👩‍👧‍👦', '👩‍👩‍👧‍👦'],
    ['ada.lovelace@example.com', 'AL'],
    ['ada@example.com', 'A'],
    ['@ada', 'A'],
    ['user_42', 'U4'],
    ['cus-9f', 'C9'],
    ['émile zola', 'ÉZ'],
    ['e\u0301mile zola', 'E\u0301Z'],
    ['山田 太郎', '山太'],
    ['김철수', '김'],
    ['नीला शर्मा', 'नीश'],
    ['..', '.'],
  ])('of %p has the initials %p', (name, initials) => {
    expect(toInitials(name)).toBe(initials)
  })

  test('has one of eight colours, which depends on the user alone', () => {
    const colours = Array.from({ length: 200 }, (_, at) => toColour(`user_${at}`))
    expect(new Set(colours)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7]))
    expect(toColour('user_7')).toBe(colours[7]!)
  })
})
