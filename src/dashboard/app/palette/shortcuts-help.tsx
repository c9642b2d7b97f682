import { useLayoutEffect, useRef } from 'preact/hooks'
import type { NavLink } from '../components/navigation.tsx'
import { t } from '../locales/translate.tsx'

/** The list of keyboard shortcuts; `links` are the pages that g opens. */
export function ShortcutsHelp({ links, onClose }: { links: readonly NavLink[]; onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="keys" onClose={onClose}>
      <h2 id="keys">{t('palette.shortcuts')}</h2>
      <dl class="facts keys-list">
        {[...listKeys(), ...links.map(({ key, name }) => [`g ${key}`, name] as const)].map(
          ([keys, action]) => (
            <>
              <dt>
                {keys.split(' ').map(key => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{action}</dd>
            </>
          ),
        )}
      </dl>
      <button type="button" class="quiet-button" onClick={() => dialog.current?.close()}>
        {t('palette.close')}
      </button>
    </dialog>
  )
}

function listKeys(): (readonly [keys: string, action: string])[] {
  return [
    ['j k', t('palette.keyNext')],
    [t('palette.enter'), t('palette.keyOpen')],
    [t('palette.escape'), t('palette.keyClose')],
    [t('palette.space'), t('palette.keyPause')],
    ['/', t('palette.keySearch')],
    [t('palette.ctrlK'), t('palette.keyPalette')],
    ['?', t('palette.keyHelp')],
  ]
}
