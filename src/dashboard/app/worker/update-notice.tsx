import { hasUpdate, applyUpdate } from './update.ts'

/** Offers to reload when a new version is available. */
export function UpdateNotice() {
  return (
    <div class="toast update-notice" role="status">
      {hasUpdate.value && (
        <p>
          <span>A new version is available</span>
          <button type="button" onClick={() => void applyUpdate()}>
            Reload
          </button>
        </p>
      )}
    </div>
  )
}
