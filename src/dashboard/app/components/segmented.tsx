interface SegmentedOptions<One extends string> {
  label: string
  all: readonly One[]
  chosen: One | undefined
  /** The text of a choice. */
  toText(one: One): string
  onChoose(one: One): void
}

/** A choice between a few buttons in a row. */
export function Segmented<One extends string>(options: SegmentedOptions<One>) {
  const { label, all, chosen, toText, onChoose } = options
  return (
    <div class="segmented" role="group" aria-label={label}>
      {all.map(one => (
        <button key={one} type="button" aria-pressed={one === chosen} onClick={() => onChoose(one)}>
          {toText(one)}
        </button>
      ))}
    </div>
  )
}
