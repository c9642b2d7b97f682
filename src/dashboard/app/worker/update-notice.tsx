import { hasUpdate, applyUpdate } from './register.ts'
import { t } from '../locales/translate.tsx'

/** Offers to reload when a new version is available. */
export function UpdateNotice() {
  return (
    <div class="toast update-notice" role="status">
      {hasUpdate.value && (
        <p>
          <span>{t('common.newVersion')}</span>
          <button type="button" onClick={applyUpdate}>
            {t('app.reload')}
          </button>
        </p>
      )}
    </div>
  )
}
