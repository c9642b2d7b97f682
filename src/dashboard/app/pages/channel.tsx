import type { ProjectPage } from '../app.tsx'
import { ProjectFrame } from '../parts/frame.tsx'

export default function ChannelPage({ account, project }: ProjectPage) {
  return (
    <ProjectFrame account={account} project={project} at="channels" title="Channel">
      <h1 class="page-title">Channel</h1>
    </ProjectFrame>
  )
}
