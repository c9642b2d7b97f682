/** Where a list goes on: from `seq` on to older events, or to newer ones. */
export interface Position {
  direction: 'older' | 'newer'
  seq: bigint
}

/** The opaque text that clients hand back. */
export function toCursor({ direction, seq }: Position): string {
  return Buffer.from(`${direction === 'older' ? '<' : '>'}${seq}`).toString('base64url')
}

/** The position in a cursor, or undefined when it is none of ours. */
export function parseCursor(cursor: string): Position | undefined {
  const match = /^([<>])(\d{1,18})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (!match?.[2]) return undefined
  const position: Position = {
    direction: match[1] === '<' ? 'older' : 'newer',
    seq: BigInt(match[2]),
  }
  return toCursor(position) === cursor ? position : undefined
}
