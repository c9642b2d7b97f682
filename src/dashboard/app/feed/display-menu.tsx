import { ErrorBoundary } from 'preact-iso'
import { Icon } from '../components/icon.tsx'
import { useOpened } from '../components/use-opened.ts'
import { FailedPart, lazyPages } from '../lazy-page.tsx'

const DisplayChoices = lazyPages(
  () => import('./display-choices.tsx'),
  FailedPart,
)(all => all.DisplayChoices)

/** A menu with the choices of how rows look, which load when it opens. */
export function DisplayMenu() {
  const { isOpened, onBeforeToggle } = useOpened()
  return (
    <>
      <button
        type="button"
        class="icon-button"
        popovertarget="display-menu"
        aria-label="Display"
        title="Display"
      >
        <Icon name="display" />
      </button>
      <div id="display-menu" class="menu menu-end" popover="auto" onBeforeToggle={onBeforeToggle}>
        {isOpened && (
          <ErrorBoundary>
            <DisplayChoices />
          </ErrorBoundary>
        )}
      </div>
    </>
  )
}
