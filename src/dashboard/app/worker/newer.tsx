import { isOutdated, loadNewer } from './register.ts'

/** Says that there is a newer version; nobody is hurried. */
export function Newer() {
  return (
    <div class="undo newer" role="status">
      {isOutdated.value && (
        <p>
          <span>A new version is ready</span>
          <button type="button" onClick={loadNewer}>
            Load it
          </button>
        </p>
      )}
    </div>
  )
}
