import type { Account } from '../../../access/sign-in/schema.ts'
import { request } from '../request.ts'

const PLACEHOLDER = 'tdg_…'

interface Project {
  id: string
  name: string
}

/** Offers an API key to an admin who is signed in, and puts it into the samples of the page. */
export async function offerKey(place: HTMLElement): Promise<void> {
  const answer = await request('GET /api/me')
  const projects = answer.ok && canConfirm(answer.data) ? listProjects(answer.data) : []
  if (projects.length > 0) ask(place, projects)
}

/** Returns whether this page can ask for a confirmation. It knows passwords alone. */
function canConfirm({ isVerified, credentials }: Account): boolean {
  return isVerified || credentials.hasPassword
}

/** The projects in which the account may create keys. The server decides. */
function listProjects({ organizations }: Account): Project[] {
  return organizations
    .filter(({ role }) => role === 'owner' || role === 'admin')
    .flatMap(({ projects }) => projects)
}

function ask(place: HTMLElement, projects: readonly Project[]): void {
  const select = element('select', { name: 'project' })
  for (const { id, name } of projects) select.append(element('option', { value: id }, name))
  show(place, 'You are signed in. Create an API key for the examples on this page.', {
    label: 'Project',
    input: select,
    action: 'Create a key',
    send: () => makeKey(place, select.value),
  })
}

async function makeKey(place: HTMLElement, project: string): Promise<void> {
  const key = { projectId: project, name: 'Documentation' }
  const answer = await request('POST /api/projects/:projectId/keys', key)
  if (answer.ok) return takeKey(place, answer.data.key)
  const { code, message } = answer.failure
  if (code === 'verification_needed') return askPassword(place, project, 'This shows a secret.')
  place.replaceChildren(element('p', { role: 'alert' }, message))
}

function askPassword(place: HTMLElement, project: string, why: string): void {
  const input = element('input', {
    type: 'password',
    name: 'password',
    autocomplete: 'current-password',
  })
  show(place, `${why} Type your password again.`, {
    label: 'Password',
    input,
    action: 'Continue',
    async send() {
      const answer = await request('POST /api/session/verify', { password: input.value })
      if (answer.ok) await makeKey(place, project)
      else askPassword(place, project, answer.failure.message)
    },
  })
  input.focus()
}

function takeKey(place: HTMLElement, key: string): void {
  for (const code of document.querySelectorAll('.sample code'))
    for (const node of code.childNodes) replaceIn(node, key)
  place.replaceChildren(
    element('p', { role: 'status' }, 'The examples have the key now. It is shown once:'),
    element('code', {}, key),
  )
}

function replaceIn(node: Node, key: string): void {
  if (node instanceof Text) node.data = node.data.replaceAll(PLACEHOLDER, key)
  else for (const child of node.childNodes) replaceIn(child, key)
}

interface Step {
  label: string
  input: HTMLInputElement | HTMLSelectElement
  action: string
  send(): Promise<void>
}

function show(place: HTMLElement, said: string, { label, input, action, send }: Step): void {
  const button = element('button', { type: 'submit' }, action)
  const form = element('form', {}, '')
  const field = element('label', {}, label)
  field.append(input)
  form.append(field, button)
  let isBusy = false
  form.addEventListener('submit', async event => {
    event.preventDefault()
    if (isBusy) return
    isBusy = true
    await send()
    isBusy = false
  })
  place.replaceChildren(element('p', { role: 'status' }, said), form)
  place.hidden = false
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string>,
  text = '',
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  if (text) made.textContent = text
  return made
}
