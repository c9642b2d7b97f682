import { signal } from '@preact/signals'
import type { Account } from '../../../access/sign-in/schema.ts'
import { toProjectPath } from '../paths.ts'
import { findProject } from '../session.ts'

/** The project whose checklist was opened in this page and has open steps. */
export const openChecklist = signal<string>()

/** Leads from the pages of the steps back to an open checklist. */
export function ChecklistLink({ account }: { account: Account }) {
  const project = openChecklist.value
  if (project === undefined || !findProject(account, project)) return null
  return (
    <p class="note">
      <a href={toProjectPath('start', project)}>Back to the checklist</a>
    </p>
  )
}
