import type { Signal } from '@preact/signals'
import type { Account } from '../../../access/sign-in/schema.ts'
import { TIMES, times } from '../feed/display.tsx'
import { PATHS, toFeedPath, toOrganizationPath } from '../paths.ts'
import { theme, THEMES } from '../theme.ts'
import { Segmented, SignOutButton } from './buttons.tsx'
import { listAccountLinks } from './navigation.tsx'

// The items of menus are loaded after the page.

const CHOICES = {
  system: 'System',
  light: 'Light',
  dark: 'Dark',
  relative: 'Relative',
  absolute: 'Time of day',
} as const

/** The items of the menu of the account. */
export function AccountItems({ account }: { account: Account }) {
  const { name, email } = account.person
  return (
    <>
      <p class="menu-account">
        <bdi>{name}</bdi>
        <span>
          <bdi>{email}</bdi>
        </span>
      </p>
      <Choice title="Theme" all={THEMES} chosen={theme} />
      {listAccountLinks().map(({ name, path }) => (
        <a key={path} class="menu-item" href={path}>
          {name}
        </a>
      ))}
      <hr />
      <a class="menu-item" href="/docs">
        Documentation
      </a>
      <a class="menu-item" href="/source">
        Source code
      </a>
      <SignOutButton className="menu-item" />
    </>
  )
}

/** Links to the projects of the account. */
export function ProjectItems({
  account,
  project,
}: {
  account: Account
  project: string | undefined
}) {
  return (
    <>
      <a class="menu-item" href={PATHS.overview}>
        Overview
      </a>
      {account.organizations.map(({ id, name, projects }) => (
        <section key={id}>
          <h2>
            <bdi>{name}</bdi>
          </h2>
          {projects.map(one => (
            <a
              key={one.id}
              class="menu-item"
              href={toFeedPath(one.id)}
              aria-current={one.id === project ? 'page' : undefined}
            >
              <bdi>{one.name}</bdi>
            </a>
          ))}
          <a class="menu-item menu-more" href={toOrganizationPath(id, 'members')}>
            Members and settings
          </a>
        </section>
      ))}
    </>
  )
}

/** The choice of how rows tell times. */
export function DisplayItems() {
  return <Choice title="Times" all={TIMES} chosen={times} />
}

interface ChoiceOptions<One> {
  title: string
  all: readonly One[]
  chosen: Signal<One>
}

/** A choice between a few looks of the pages. */
function Choice<One extends keyof typeof CHOICES>(options: ChoiceOptions<One>) {
  const { title, all, chosen } = options
  return (
    <section>
      <h2>{title}</h2>
      <Segmented
        label={title}
        all={all}
        chosen={chosen.value}
        toText={one => CHOICES[one]}
        onChoose={one => (chosen.value = one)}
      />
    </section>
  )
}
