interface StepOptions {
  label: string
  hint: string
  to: string | undefined
  onGo(id: string): void
  path: string
}

/** A button that opens the next newer or older event, if there is one. */
export function StepButton({ label, hint, to, onGo, path }: StepOptions) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      title={hint}
      aria-disabled={to === undefined}
      onClick={() => to !== undefined && onGo(to)}
    >
      <StrokeIcon path={path} />
    </button>
  )
}

export function StrokeIcon({ path }: { path: string }) {
  return (
    <svg class="stroke" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <path d={path} />
    </svg>
  )
}
