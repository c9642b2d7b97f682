import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { toBaseUrl } from '../base/config/values.ts'
import { toReason } from '../base/errors.ts'
import { createManagementApi, type ManagementApi } from './apply/api.ts'
import { parseStateFile, type StateFile } from './apply/file.ts'
import { describeStep, toPlan, type Plan, type Step } from './apply/plan.ts'
import { readState, type State } from './apply/state.ts'
import { toSlug } from '../log/channels/name.ts'
import { command, UsageError } from './command.ts'

/** The exit code of --plan when something would change. */
const WOULD_CHANGE = 2

export const apply = command({
  name: 'apply',
  description:
    'Apply a file of projects, channels, webhooks and members. Requires TIDINGS_TOKEN. TIDINGS_URL is http://localhost:3000 by default.',
  examples: [
    'tidings apply --file tidings.yaml --plan',
    'tidings apply -f tidings.yaml',
    'tidings apply -f tidings.yaml --yes --json',
  ],
  args: {
    file: { type: 'string', alias: 'f', required: true, description: 'The file, in YAML' },
    plan: {
      type: 'boolean',
      default: false,
      description: 'Print the plan alone. The exit code is 2 if something would change',
    },
    yes: { type: 'boolean', default: false, description: 'Apply the plan without a question' },
  },
  async run({ file: path, plan: isPlanOnly, yes, json }) {
    if (isPlanOnly && yes) throw new UsageError('Use either --plan or --yes.')
    if (!isPlanOnly && !yes && !process.stdin.isTTY) {
      throw new UsageError(
        'Without a terminal nobody can be asked. Add --yes to apply the plan, or --plan to print it.',
      )
    }
    const print = json ? () => {} : (text: string) => console.log(text)
    const file = readFile(path)
    const api = connectApi()
    const state = await readState(api, file)
    const plan = toPlan(file, state)
    print(describePlan(plan, state))
    const { steps, refused } = plan
    if (refused.length > 0) {
      process.exitCode = 1
      const text = 'Nothing was changed, because the token cannot do all of this.'
      return { json: toJson(state, plan), text }
    }
    if (isPlanOnly || steps.length === 0) {
      process.exitCode = isPlanOnly && steps.length > 0 ? WOULD_CHANGE : 0
      return { json: toJson(state, plan), text: describeCount(steps.length) }
    }
    if (!yes && !(await askToApply(steps.length))) throw new Error('Nothing was changed.')
    const writer = json ? startJson(state) : undefined
    const onDone = (done: Done) => {
      const { step, ...shown } = done
      print(describeDone(done))
      writer?.add(toChange(step, { status: 'done', ...shown }))
    }
    const performed = await perform(api, plan, { projects: state.projects, onDone })
    writer?.end(performed)
    return {
      json: undefined,
      text: describeEnd(performed),
      hasFailed: performed.failed !== undefined,
    }
  },
})

/** Creates the API from TIDINGS_URL and TIDINGS_TOKEN. */
function connectApi(): ManagementApi {
  const { TIDINGS_URL: given = 'http://localhost:3000', TIDINGS_TOKEN: token = '' } = process.env
  if (!/^[!-~]+$/.test(token)) {
    throw new UsageError(
      'Set TIDINGS_TOKEN to a management token. Create one in the dashboard under Account or Organization.',
    )
  }
  const url = toBaseUrl(given)
  if (url === undefined) {
    throw new UsageError(`TIDINGS_URL must be a URL like http://localhost:3000. It is ${given}.`)
  }
  return createManagementApi(url, token)
}

function readFile(path: string): StateFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`The file cannot be read: ${toReason(error)}`, { cause: error })
  }
  return parseStateFile(text, path)
}

/** Asks at the terminal. Anything but `y` and `yes` is a no. */
async function askToApply(count: number): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<string>(resolve => terminal.once('close', () => resolve('')))
  try {
    const answer = terminal.question(`Apply ${toChangeCount(count)}? [y/N] `)
    return /^y(es)?$/i.test((await Promise.race([answer, closed])).trim())
  } finally {
    terminal.close()
  }
}

/** A step that was done. */
interface Done {
  step: Step
  /** The signing secret of a new webhook. It cannot be read again. */
  secret?: string
  /** The link of an invite. It cannot be read again. */
  url?: string
}

/** The outcome of a plan. */
interface Performed {
  done: readonly Done[]
  /** The step that failed. The steps after it were not tried. */
  failed?: { step: Step; reason: string }
  notDone: readonly Step[]
}

/**
 * Does the steps in order, and stops at the first that fails. Calls `onDone` after each, so that no
 * secret is lost.
 */
async function perform(
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

function describePlan({ steps, refused }: Plan, { organization }: State): string {
  return [
    `Plan for the organization ${organization.name}:`,
    ...steps.map(step => `  ${step.change === 'update' ? '~' : '+'} ${describeStep(step)}`),
    ...refused.map(text => `  ! ${text}`),
  ].join('\n')
}

function describeCount(count: number): string {
  return count === 0 ? 'Nothing would change.' : `${toChangeCount(count)} would be made.`
}

function toChangeCount(count: number): string {
  return count === 1 ? '1 change' : `${count} changes`
}

function describeDone({ step, secret, url }: Done): string {
  const lines = [`Done: ${describeStep(step)}`]
  if (secret !== undefined) lines.push(`  Its secret is shown only once: ${secret}`)
  if (url !== undefined) lines.push(`  Its link is shown only once: ${url}`)
  return lines.join('\n')
}

function describeEnd({ done, failed, notDone }: Performed): string {
  if (!failed) return `Made ${toChangeCount(done.length)}.`
  return [
    `Failed: ${describeStep(failed.step)}`,
    `  ${failed.reason}`,
    ...notDone.map(step => `Not done: ${describeStep(step)}`),
    `Made ${done.length} of ${toChangeCount(done.length + 1 + notDone.length)}. Run the command again to continue.`,
  ].join('\n')
}

/** Returns the result for --json of a plan that is not performed. */
function toJson({ organization }: State, { steps, refused }: Plan) {
  const changes = steps.map(step => toChange(step, { status: 'planned' }))
  return { organization, changes, refused }
}

function toChange({ change, kind, name, project, details }: Step, outcome: object) {
  return { change, kind, name, project: project ?? null, details, ...outcome }
}

/**
 * Writes the result for --json change by change, so that a program that is stopped has printed the
 * secrets of what it made.
 */
function startJson({ organization }: State) {
  let before = `{"organization":${JSON.stringify(organization)},"changes":[`
  const add = (change: object) => {
    process.stdout.write(before + JSON.stringify(change))
    before = ','
  }
  return {
    add,
    end({ failed, notDone }: Performed) {
      if (failed) add(toChange(failed.step, { status: 'failed', error: failed.reason }))
      for (const step of notDone) add(toChange(step, { status: 'notDone' }))
      process.stdout.write('],"refused":[]}\n')
    },
  }
}
