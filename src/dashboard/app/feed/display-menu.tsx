import { Icon } from '../components/icon.tsx'
import { Choice } from '../components/menus.tsx'
import { Popover } from '../components/popover.tsx'
import { chooseDensity, chooseTimes, DENSITIES, density, TIMES, times } from './display.ts'

/** A menu with the choices of how rows look. */
export function DisplayMenu() {
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
      <Popover id="display-menu" class="menu menu-end">
        <Choice
          title="Row height"
          all={DENSITIES}
          chosen={density.value}
          onChoose={chooseDensity}
        />
        <Choice title="Times" all={TIMES} chosen={times.value} onChoose={chooseTimes} />
      </Popover>
    </>
  )
}
