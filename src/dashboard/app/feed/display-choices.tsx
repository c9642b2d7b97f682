import type { MessageKey } from '../locales/catalogue.ts'
import { t } from '../locales/translate.tsx'
import { chooseDensity, chooseTimes, DENSITIES, density, TIMES, times } from './display.ts'

const NAMES = {
  compact: 'display.compact',
  comfortable: 'display.comfortable',
  relative: 'display.relative',
  absolute: 'display.absolute',
} as const satisfies Record<string, MessageKey>

/** The choices of how rows look. */
export function DisplayChoices() {
  return (
    <>
      <Choice
        title={t('display.density')}
        all={DENSITIES}
        chosen={density.value}
        onChoose={chooseDensity}
      />
      <Choice title={t('display.times')} all={TIMES} chosen={times.value} onChoose={chooseTimes} />
    </>
  )
}

interface ChoiceOptions<One> {
  title: string
  all: readonly One[]
  chosen: One
  onChoose(one: One): void
}

function Choice<One extends keyof typeof NAMES>({
  title,
  all,
  chosen,
  onChoose,
}: ChoiceOptions<One>) {
  return (
    <fieldset class="themes">
      <legend>{title}</legend>
      <div>
        {all.map(one => (
          <label key={one}>
            <input
              type="radio"
              name={all.join('-')}
              checked={one === chosen}
              onChange={() => onChoose(one)}
            />
            <span>{t(NAMES[one])}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
