import { hasEnded } from '../session.ts'
import { hasUpdate, applyUpdate } from './update.ts'

/** Offers to reload when a new version is available, or the session has ended. */
export function UpdateNotice() {
  return (
    <div class="toast update-notice" role="status">
      {(hasEnded.value || hasUpdate.value) && (
        <p>
          <span>
            {hasEnded.value
              ? 'Your session has ended. Copy what you need'
              : 'A new version is available'}
          </span>
          <button type="button" onClick={() => void applyUpdate()}>
            Reload
          </button>
        </p>
      )}
    </div>
  )
}
