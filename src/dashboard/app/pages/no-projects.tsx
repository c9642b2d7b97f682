import { SignOutButton } from '../components/buttons.tsx'
import { StandalonePage } from '../components/standalone-page.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import type { AccountPageProps } from './props.ts'

/** The home of an account without a project. */
export default function NoProjectsPage({ account }: AccountPageProps) {
  return (
    <StandalonePage title="No projects yet" lead="You are not a member of any project.">
      <p>Ask an admin of your organization to create one, or to invite you.</p>
      {account.organizations.map(({ id, name }) => (
        <p key={id}>
          <a href={toOrganizationPath(id)}>
            <bdi>{name}</bdi>
          </a>
        </p>
      ))}
      <p>
        <a href={PATHS.account}>Your account</a>
        <SignOutButton />
      </p>
    </StandalonePage>
  )
}
