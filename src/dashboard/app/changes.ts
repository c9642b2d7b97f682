/**
 * The fields that differ from `before`, which a form sends. The others may have been changed by
 * somebody else since it was opened.
 */
export function pickChanges<Fields extends object>(
  before: Readonly<Partial<Record<keyof Fields, unknown>>>,
  after: Fields,
): Partial<Fields> {
  const isChanged = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(before[name as keyof Fields])
  return Object.fromEntries(Object.entries(after).filter(isChanged)) as Partial<Fields>
}

/** The former values of changed fields, which an undo sends. */
export function pickFormer<Fields extends object>(before: Fields, changes: Partial<Fields>) {
  const isChanged = ([name]: [string, unknown]) => Object.hasOwn(changes, name)
  return Object.fromEntries(Object.entries(before).filter(isChanged)) as Partial<Fields>
}
