import { chooseDensity, chooseTimes, DENSITIES, density, TIMES, times } from './display.ts'

const NAMES = {
  compact: 'Compact',
  comfortable: 'Comfortable',
  relative: 'Relative',
  absolute: 'Time of day',
} as const satisfies Record<string, string>

/** The choices of how rows look. */
export function DisplayChoices() {
  return (
    <>
      <Choice title="Row height" all={DENSITIES} chosen={density.value} onChoose={chooseDensity} />
      <Choice title="Times" all={TIMES} chosen={times.value} onChoose={chooseTimes} />
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
            <span>{NAMES[one]}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
