import type { ProjectPage } from '../app.tsx'
import { ProjectFrame } from '../parts/frame.tsx'

export default function KeysPage({ account, project }: ProjectPage) {
  return (
    <ProjectFrame account={account} project={project} at="keys" title="API keys">
      <h1 class="page-title">API keys</h1>
    </ProjectFrame>
  )
}
