import { density } from './display.ts'
import { readLastEvents } from './last-events.ts'
import { Rows } from './rows.tsx'

/** The last events of a project that this browser has shown, while the server cannot be reached. */
export function LastEvents({ project }: { project: string }) {
  const rows = readLastEvents(project)
  if (rows.length === 0) return null
  return (
    <section class="last-events" aria-labelledby="last-events">
      <h2 id="last-events">Last events seen in this browser</h2>
      <div id="feed" class={density.value}>
        <Rows project={project} rows={rows} hasEntrance={() => false} />
      </div>
    </section>
  )
}
