import fc from 'fast-check'

const character = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...'abvABßéÉñİıſςΣΔдЁ0129') },
  { weight: 2, arbitrary: fc.constantFrom(...'失敗海カターがガしกำลังខ្មែຂ々한ᄒ') },
  { weight: 3, arbitrary: fc.constantFrom(...' .-/_@#+%&<>(),:"\'“”。，—…\\\n\t') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('\u0301', '\u0308', '\u0327', '\u0345', '\u200d', '\ufe0f'),
  },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
)

/** A text of letters, marks and symbols of all planes. */
export const randomText = fc
  .tuple(
    fc.string({ unit: character, minLength: 1, maxLength: 30 }),
    fc.constantFrom('NFC', 'NFD', ''),
  )
  .map(([text, form]) => (form === '' ? text : text.normalize(form)).replaceAll('\0', ''))

/** Says which part of a text to take, and how to spell it. */
export const randomPart = fc.record({
  from: fc.nat(30),
  length: fc.integer({ min: 1, max: 8 }),
  form: fc.constantFrom('NFC', 'NFD'),
  isUpper: fc.boolean(),
})

/** Returns a part of a text, in another spelling. */
export function takePart(
  text: string,
  {
    from,
    length,
    form,
    isUpper,
  }: typeof randomPart extends fc.Arbitrary<infer Part> ? Part : never,
): string {
  const part = [...text].slice(from, from + length).join('')
  return (isUpper ? part.toUpperCase() : part).normalize(form)
}
