import { hasUpdate, applyUpdate } from './register.ts'

/** Says that there is a newer version; nobody is hurried. */
export function UpdateNotice() {
  return (
    <div class="toast update-notice" role="status">
      {hasUpdate.value && (
        <p>
          <span>A new version is ready</span>
          <button type="button" onClick={applyUpdate}>
            Load it
          </button>
        </p>
      )}
    </div>
  )
}
