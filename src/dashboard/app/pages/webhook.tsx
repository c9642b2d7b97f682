import type { ProjectPage } from '../app.tsx'
import { ProjectFrame } from '../parts/frame.tsx'

export default function WebhookPage({ account, project }: ProjectPage) {
  return (
    <ProjectFrame account={account} project={project} at="webhooks" title="Webhook">
      <h1 class="page-title">Webhook</h1>
    </ProjectFrame>
  )
}
