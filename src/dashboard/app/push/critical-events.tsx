import type { Subscription } from '../../../delivery/push/subscription-schema.ts'
import { QuietButton } from '../components/buttons.tsx'
import { Section } from '../components/item.tsx'
import { changeDevice } from './devices.tsx'

interface CriticalEventsOptions {
  device: Subscription
  onChanged(): Promise<void>
}

/** The setting that lets critical events through to this browser. The member is asked once. */
export function CriticalEvents({ device, onChanged }: CriticalEventsOptions) {
  const { id, letsCriticalThrough: isLet } = device

  const answer = (isLetNow: boolean) =>
    changeDevice({
      id,
      edit: { letsCriticalThrough: isLetNow },
      undo: isLet === null ? undefined : { letsCriticalThrough: isLet },
      message: isLetNow ? 'Critical events get through.' : 'Critical events are held back.',
      onChanged,
    })

  return (
    <Section
      id="critical"
      title={isLet === null ? 'Let critical events through?' : 'Critical events in this browser'}
    >
      <p class="page-lead">
        {isLet === null
          ? 'A critical event means that somebody has to act now. It can notify you here also in quiet hours, and from channels that you muted.'
          : isLet
            ? 'They notify you also in quiet hours, and from channels that you muted.'
            : 'Quiet hours and mutes hold them back, like all other events.'}
      </p>
      <QuietButton aria-pressed={isLet === true} onClick={() => answer(true)}>
        Let them through
      </QuietButton>
      <QuietButton aria-pressed={isLet === false} onClick={() => answer(false)}>
        Hold them back
      </QuietButton>
    </Section>
  )
}
