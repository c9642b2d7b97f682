import { readPath } from '../../events/metadata-values.ts'
import { findText, type Preset } from './received.ts'

/** Currencies whose amounts Stripe counts in whole units, or in thousandths. */
const WHOLE = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ')
const THOUSANDTHS = 'bhd jod kwd omr tnd'.split(' ')
const AMOUNTS = ['amount', 'amount_total', 'amount_due']

/** The webhooks of Stripe. */
export const stripe: Preset = ({ body }) => {
  const find = (path: string) => findText(body, path)
  const type = find('type')
  const id = find('id')
  if (type === undefined || id === undefined || find('object') !== 'event') return []
  const object = readPath(body, ['data', 'object'])
  const words = type.replace(/[._]/g, ' ')
  const amount = toAmount(object, type === 'charge.refunded' ? ['amount_refunded'] : AMOUNTS)
  const isLive = find('livemode') === 'true'
  return [
    {
      title: `${words.charAt(0).toUpperCase()}${words.slice(1)}${amount ? `: ${amount}` : ''}`,
      description: findText(object, 'description'),
      ...(/(failed|dispute\.created)$/.test(type) && { level: 'high' }),
      ...(/^\w+$/.test(id) && {
        url: `https://dashboard.stripe.com/${isLive ? '' : 'test/'}events/${id}`,
      }),
      key: id,
    },
  ]
}

/** Returns the amount of an object as a reader writes it, such as `$20.00`. */
function toAmount(object: unknown, names: readonly string[]): string | undefined {
  const currency = findText(object, 'currency')?.toLowerCase() ?? ''
  const amount = names.map(name => findText(object, name)).find(Boolean) ?? ''
  if (!/^[a-z]{3}$/.test(currency) || !/^-?\d{1,15}$/.test(amount)) return undefined
  const digits = WHOLE.includes(currency) ? 0 : THOUSANDTHS.includes(currency) ? 3 : 2
  return (Number(amount) / 10 ** digits).toLocaleString('en', {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}
