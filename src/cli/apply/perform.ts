import { toReason } from '../../base/errors.ts'
import { toSlug } from '../../log/channels/name.ts'
import type { ManagementApi } from './api.ts'
import type { Plan, Step } from './plan.ts'
import type { State } from './state.ts'

/** A step that was done. */
export interface Done {
  step: Step
  /** The signing secret of a new webhook. It cannot be read again. */
  secret?: string
  /** The link of an invite. It cannot be read again. */
  url?: string
}

/** The outcome of a plan. */
export interface Performed {
  done: readonly Done[]
  /** The step that failed. The steps after it were not tried. */
  failed?: { step: Step; reason: string }
  notDone: readonly Step[]
}

/**
 * Does the steps in order, and stops at the first that fails. Calls `onDone` after each, so that no
 * secret is lost.
 */
export async function perform(
  api: ManagementApi,
  { steps }: Pick<Plan, 'steps'>,
  { projects, onDone }: Pick<State, 'projects'> & { onDone: (done: Done) => void },
): Promise<Performed> {
  const ids = new Map(projects.map(({ name, id }) => [name, id]))
  // The ids of created channels, by their project and slug.
  const channels = new Map<string, string>()
  const done: Done[] = []
  for (const [index, step] of steps.entries()) {
    const { method, path, body } = step.request
    const project = ids.get(step.project ?? '') ?? ''
    const full = path.replace('{project}', project)
    const filter = body.channels?.map(one => channels.get(`${project} ${one}`) ?? one)
    try {
      const data = await api.request<{ id: string; secret?: string; url?: string }>(
        method,
        full,
        filter ? { ...body, channels: filter } : body,
      )
      if (step.kind === 'project') ids.set(step.name, data.id)
      if (step.kind === 'channel') channels.set(`${project} ${toSlug(step.name)}`, data.id)
      const isNewWebhook = step.kind === 'webhook' && step.change === 'create'
      const one: Done = {
        step,
        ...(isNewWebhook && data.secret !== undefined && { secret: data.secret }),
        ...(step.change === 'invite' && data.url !== undefined && { url: data.url }),
      }
      done.push(one)
      onDone(one)
    } catch (error) {
      const failed = { step, reason: toReason(error) }
      return { done, failed, notDone: steps.slice(index + 1) }
    }
  }
  return { done, notDone: [] }
}
