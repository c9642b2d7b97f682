import type { ProjectPage } from '../app.tsx'
import { ProjectFrame } from '../parts/frame.tsx'

export default function ChannelsPage({ account, project }: ProjectPage) {
  return (
    <ProjectFrame account={account} project={project} at="channels" title="Channels">
      <h1 class="page-title">Channels</h1>
    </ProjectFrame>
  )
}
