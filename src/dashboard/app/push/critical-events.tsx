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
  const { id, letsCriticalThrough } = device

  const answer = (isLet: boolean) =>
    changeDevice({
      id,
      edit: { letsCriticalThrough: isLet },
      undo: letsCriticalThrough === null ? undefined : { letsCriticalThrough },
      message: isLet ? 'Critical events get through.' : 'Critical events are held back.',
      onChanged,
    })

  if (letsCriticalThrough === null) {
    return (
      <Section id="critical" title="Let critical events through?">
        <p class="page-lead">
          A critical event means that somebody has to act now. It can notify you here also in quiet
          hours, and from channels that you muted.
        </p>
        <p class="actions">
          <button type="button" class="button" onClick={() => void answer(true)}>
            Let them through
          </button>
          <QuietButton onClick={() => answer(false)}>No</QuietButton>
        </p>
      </Section>
    )
  }
  return (
    <Section id="critical" title="Critical events in this browser">
      <p class="page-lead">
        {letsCriticalThrough
          ? 'They notify you also in quiet hours, and from channels that you muted.'
          : 'Quiet hours and mutes hold them back, like all other events.'}
      </p>
      <QuietButton onClick={() => answer(!letsCriticalThrough)}>
        {letsCriticalThrough ? 'Hold them back' : 'Let critical events through'}
      </QuietButton>
    </Section>
  )
}
