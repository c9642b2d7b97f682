import type { RefObject } from 'preact'
import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import { IconMenu } from '../components/popover.tsx'
import { parseTyped, toExactText } from '../feed/reader-dates.ts'
import { toSearchPath, type Search } from '../feed/search.ts'
import { toInputTime } from '../time.ts'
import { withTimes } from './fragment.ts'

const CHOICES = {
  Today: 'after:today',
  Yesterday: 'after:yesterday before:today',
  'Last 7 days': 'after:7d',
}

interface DatesOptions {
  project: string
  search: Search
  input: RefObject<HTMLInputElement | null>
}

/** A button that opens a choice of days. */
export function Dates(options: DatesOptions) {
  return (
    <IconMenu id="dates" icon="calendar" label="Choose days">
      <Days {...options} />
    </IconMenu>
  )
}

/** Writes the chosen days of the reader into the search, as `after:` and `before:`. */
function Days({ project, search, input }: DatesOptions) {
  const { route } = useLocation()
  const text = input.current?.value ?? ''
  const { after, before } = parseTyped(text).filters
  const [from, setFrom] = useState(after === null ? '' : toDay(after))
  const [to, setTo] = useState(before === null ? '' : toDay(before - 1))
  const range = [from && `after:${from}`, to && `before:${toNextDay(to)}`].filter(Boolean).join(' ')

  const toButton = (name: string, times: string) => (
    <button
      key={name}
      type="button"
      class="menu-item"
      popovertarget="dates"
      popovertargetaction="hide"
      onClick={() => {
        const whole = { ...search, text: toExactText(withTimes(text, times)) }
        route(toSearchPath(project, { ...whole, from: undefined, to: undefined }))
      }}
    >
      {name}
    </button>
  )
  // Without a form, so that Enter does not start the search of the box.
  const toInput = (name: string, day: string, onDay: (day: string) => void) => (
    <label class="menu-item">
      {name}
      <input
        type="date"
        form=""
        value={day}
        onChange={({ currentTarget }) => onDay(currentTarget.value)}
      />
    </label>
  )
  return (
    <>
      {Object.entries(CHOICES).map(([name, times]) => toButton(name, times))}
      <hr />
      {toInput('First day', from, setFrom)}
      {toInput('Last day', to, setTo)}
      {toButton(range ? 'Show these days' : 'Show all days', range)}
    </>
  )
}

function toDay(ms: number): string {
  return toInputTime(ms).slice(0, 10)
}

function toNextDay(day: string): string {
  const noon = new Date(`${day}T12:00`)
  return toDay(noon.setDate(noon.getDate() + 1))
}
