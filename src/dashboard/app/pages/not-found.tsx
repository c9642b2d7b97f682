import { Layout } from '../components/layout.tsx'
import { PATHS } from '../paths.ts'
import type { AccountPageProps } from './props.ts'

/** A page that does not exist, next to the navigation. */
export default function NotFoundPage({ account }: AccountPageProps) {
  const title = 'Page not found'
  return (
    <Layout account={account} title={title} path="">
      <h1 class="page-title">{title}</h1>
      <p>
        It does not exist, or you do not have access to it. <a href={PATHS.home}>Go to the feed</a>
      </p>
    </Layout>
  )
}
