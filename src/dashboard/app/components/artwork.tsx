/** The sun and the waves of the logo as the background of standalone pages. */
export function Backdrop() {
  return (
    <svg
      class="backdrop"
      viewBox="0 0 1440 480"
      preserveAspectRatio="xMaxYMax slice"
      aria-hidden="true"
    >
      <circle class="backdrop-sun" cx="1120" cy="190" r="92" />
      <path
        class="backdrop-far"
        d="M0 260c120-56 240-56 360 0s240 56 360 0 240-56 360 0 240 56 360 0v220H0z"
      />
      <path
        class="backdrop-mid"
        d="M-120 320c130-60 260-60 390 0s260 60 390 0 260-60 390 0 260 60 390 0 260-60 390 0v160H-120z"
      />
      <path
        class="backdrop-near"
        d="M-60 392c110-48 220-48 330 0s220 48 330 0 220-48 330 0 220 48 330 0 220-48 330 0v88H-60z"
      />
    </svg>
  )
}

/** A wavy line above the newest event. It moves while the feed is live. */
export function WaveLine({ kind }: { kind: string }) {
  return (
    <div class={`wave-line wave-line-${kind}`}>
      <svg aria-hidden="true">
        <defs>
          <pattern id="wave" width="48" height="12" patternUnits="userSpaceOnUse">
            <path d="M0 6c8-5.4 16-5.4 24 0s16 5.4 24 0" />
          </pattern>
        </defs>
        <rect width="100%" height="12" />
      </svg>
    </div>
  )
}
