import { readPath } from '../../events/metadata-values.ts'
import { findText, type Draft, type Preset } from './received.ts'

/** The states of a finished workflow run, or of a deployment, that are not success. */
const FAILED = ['failure', 'timed_out', 'startup_failure', 'action_required', 'error']

/** The webhooks of GitHub. */
export const github: Preset = ({ headers, body }) => {
  const event = headers.get('x-github-event')
  if (!event) return []
  const find = (path: string) => findText(body, path)
  const draft = toDraft(event, body, find)
  return [{ ...draft, key: headers.get('x-github-delivery') ?? undefined }]
}

function toDraft(event: string, body: object, find: (path: string) => string | undefined): Draft {
  const repository = find('repository.full_name') ?? find('organization.login') ?? 'GitHub'
  const sender = find('sender.login') ?? 'Somebody'
  const action = find('action')
  const url = ['html_url', 'compare', 'target_url']
    .map(name => find(`${event}.${name}`))
    .find(Boolean)
  const home = url ?? find('repository.html_url')
  switch (event) {
    case 'ping':
      return { title: `GitHub is connected to ${repository}`, description: find('zen'), url: home }
    case 'push': {
      const commits = readPath(body, ['commits'])
      const n = Array.isArray(commits) ? commits.length : 0
      const ref = find('ref') ?? ''
      const name = ref.replace(/^refs\/(heads|tags)\//, '')
      const counted = n === 1 ? '1 commit' : `${n} commits`
      const isDeleted = find('deleted') === 'true'
      const branch = isDeleted ? `the branch ${name}` : `${counted} to ${name}`
      const what = ref.startsWith('refs/tags/') ? `the tag ${name}` : branch
      return {
        title: `${find('pusher.name') ?? sender} ${isDeleted ? 'deleted' : 'pushed'} ${what} of ${repository}`,
        description: find('head_commit.message'),
        url: (isDeleted ? undefined : find('compare')) ?? home,
      }
    }
    case 'pull_request':
    case 'issues': {
      const field = event === 'issues' ? 'issue' : event
      const what = event === 'issues' ? 'issue' : 'pull request'
      const isMerged = action === 'closed' && find('pull_request.merged') === 'true'
      return {
        title: `${sender} ${isMerged ? 'merged' : action} ${what} #${find(`${field}.number`)}: ${find(`${field}.title`)}`,
        description: `In ${repository}`,
        url: find(`${field}.html_url`),
      }
    }
    case 'release':
      return {
        title: `${repository} ${action} ${find('release.name') ?? find('release.tag_name')}`,
        description: find('release.body'),
        url,
      }
    case 'star':
      return {
        title: `${sender} ${action === 'deleted' ? 'unstarred' : 'starred'} ${repository}`,
        url: home,
      }
    case 'workflow_run': {
      const end = find('workflow_run.conclusion')
      const isOver = action === 'completed'
      return {
        title: `${find('workflow_run.name') ?? 'Workflow'} of ${repository}: ${(isOver && end) || find('workflow_run.status') || action}`,
        description: find('workflow_run.display_title'),
        url,
        thread: `workflow ${find('workflow_run.id')} ${find('workflow_run.run_attempt') ?? 1}`,
        ...toProgress(isOver ? (end ?? 'success') : 'running'),
      }
    }
    case 'deployment':
    case 'deployment_status': {
      const state = find('deployment_status.state') ?? 'pending'
      return {
        title: `Deployment of ${repository} to ${find('deployment.environment') ?? 'production'}: ${state}`,
        description: find('deployment_status.description') ?? find('deployment.description'),
        url: find('deployment_status.log_url') ?? find('deployment_status.target_url') ?? home,
        thread: `deployment ${find('deployment.id')}`,
        ...toProgress(/^(pending|queued|in_progress|waiting)$/.test(state) ? 'running' : state),
      }
    }
    default:
      return { title: `${event} ${action ?? ''} in ${repository}`.replace('  ', ' '), url: home }
  }
}

/** Returns the state of a thread. GitHub can tell late, after the end, that it runs. */
function toProgress(result: string): Partial<Draft> {
  if (result === 'running') return { state: result, mayBeLate: true }
  if (FAILED.includes(result)) return { state: 'failed', level: 'high' }
  // Another deployment replaces one that is inactive.
  return { state: /^(cancelled|inactive)$/.test(result) ? 'resolved' : 'succeeded' }
}
