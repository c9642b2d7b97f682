const MARKUP =
  '<img src=x onerror="document.title=1"><script>hacked()</script>"onmouseover=\'hacked()\''
const BIDI = '\u202eenola txeT\u2066 desolc reven \u200f\u200b'
const ZALGO = 'Z̸̢̛̜͓̘̱͗̈́̓͜͠ą̴̛̫̣̱̈́͋̕͝l̷̨̧̛̪̲̻̀̍̕g̶̡̛̝͓͔̈́̓̕ͅo̵̧̢̤̭̘̒̀̕͝'
/** Wider than every screen; a longer one costs as much time as all other texts. */
const LONG_WORD = 'W'.repeat(1_000)

/** Texts of applications and accounts that try to be more than text. */
const HOSTILE = [
  ...[MARKUP, BIDI + MARKUP, ZALGO.repeat(20), LONG_WORD, `${LONG_WORD} ${BIDI}`],
  ...[`https://example.com/${LONG_WORD}`, `https://bank.example@example.com/${BIDI}`],
]

/** Fields with free text, and no words or ids of the server. */
const WRITTEN = new Set([
  'aliases',
  ...['title', 'description', 'name', 'channelName', 'userId', 'alias', 'source', 'label', 'email'],
  ...['address', 'browser', 'actor', 'targetName', 'message', 'reason', 'error', 'body'],
  ...[
    'actionText',
    'eventTitle',
    'detailsText',
    'lastError',
    'disabledReason',
    'answer',
    'subject',
    'target',
    'prefix',
  ],
])
/** Fields whose values are all free text. */
const WRITTEN_WHOLE = new Set(['tags', 'metadata', 'properties', 'headers'])

/** Returns an answer of the server with hostile text in every field of free text. */
export function toHostile(data: unknown): unknown {
  let turn = 0
  const next = () => HOSTILE[turn++ % HOSTILE.length]
  const replace = (value: unknown, name: string, isWhole: boolean): unknown => {
    if (typeof value === 'string') return isWhole || WRITTEN.has(name) ? next() : value
    if (Array.isArray(value)) return value.map(item => replace(item, name, isWhole))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        const isAll = isWhole || WRITTEN_WHOLE.has(key)
        return [isWhole ? `${next()?.slice(0, 300)} ${key}` : key, replace(inner, key, isAll)]
      }),
    )
  }
  return replace(data, '', false)
}
