import type { ProjectPage } from '../app.tsx'
import { ProjectFrame } from '../parts/frame.tsx'

export default function WebhooksPage({ account, project }: ProjectPage) {
  return (
    <ProjectFrame account={account} project={project} at="webhooks" title="Webhooks">
      <h1 class="page-title">Webhooks</h1>
    </ProjectFrame>
  )
}
