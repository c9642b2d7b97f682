import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'

interface TabsOptions<Name extends string> {
  /** The name of the group, for screen readers. */
  label: string
  tabs: readonly { name: Name; label: ComponentChildren }[]
  chosen: NoInfer<Name>
  onChoose(name: Name): void
  /** The content of the chosen tab. */
  children: ComponentChildren
}

/** Shows one of several contents at a time. Arrow keys, Home and End choose another tab. */
export function Tabs<Name extends string>(options: TabsOptions<Name>) {
  const { label, tabs, chosen, onChoose, children } = options
  const id = useId()
  const list = useRef<HTMLDivElement>(null)

  function onKeyDown(event: KeyboardEvent) {
    const index = tabs.findIndex(({ name }) => name === chosen)
    const last = tabs.length - 1
    const places: Readonly<Record<string, number>> = {
      Home: 0,
      End: last,
      ArrowLeft: index > 0 ? index - 1 : last,
      ArrowRight: index < last ? index + 1 : 0,
    }
    const next = places[event.key] ?? -1
    const tab = tabs[next]
    if (!tab) return
    event.preventDefault()
    onChoose(tab.name)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus()
  }

  return (
    <div>
      <div class="tab-row" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ name, label }) => (
          <button
            key={name}
            type="button"
            class="tab"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`}>
        {children}
      </div>
    </div>
  )
}
