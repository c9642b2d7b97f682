import type { AnchorHTMLAttributes, ComponentChildren } from 'preact'

/** A web address. It ends before invisible characters, which could hide where it leads. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"\p{C}]+/giu
/** The punctuation of the sentence around an address. */
const PUNCTUATION = new Set(".,:;!?'’”*)]}")
/** Longer addresses are not links. */
const MAX_ADDRESS = 2_000

/** Returns whether a value of an event is text with an address. */
export function hasAddress(value: unknown): boolean {
  return typeof value === 'string' && value.search(ADDRESS) >= 0
}

/** Untrusted text, in which web addresses are links. */
export function LinkedText({ text }: { text: string }) {
  const parts: ComponentChildren[] = []
  let end = 0
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    if (found.length > MAX_ADDRESS) continue
    const address = cutPunctuation(found)
    // A user name before the host can look like the host.
    if (!URL.canParse(address) || new URL(address).username !== '') continue
    parts.push(text.slice(end, index), <OutwardLink href={address}>{address}</OutwardLink>)
    end = index + address.length
  }
  return (
    <bdi>
      {parts}
      {text.slice(end)}
    </bdi>
  )
}

/** A link to an untrusted address, in a new tab. */
export function OutwardLink(attributes: AnchorHTMLAttributes<HTMLAnchorElement>) {
  return <a target="_blank" rel="noopener noreferrer" title="Opens in a new tab" {...attributes} />
}

/** Cuts it with a loop: a regular expression is slow where much punctuation is inside. */
function cutPunctuation(address: string): string {
  let end = address.length
  while (PUNCTUATION.has(address[end - 1] ?? '')) end--
  return address.slice(0, end)
}
