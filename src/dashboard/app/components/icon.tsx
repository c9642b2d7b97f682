/** A symbol from icons.html, which every page includes. */
export function Icon({ name, size = 20 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} aria-hidden="true">
      <use href={`#icon-${name}`} />
    </svg>
  )
}
