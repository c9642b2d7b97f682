import { useEffect } from 'preact/hooks'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { usePages } from '../components/use-pages.ts'
import { readResetLinks, withdrawResetLink } from './api.ts'

interface ResetLinksOptions {
  /** The id of the organization. */
  organization: string
  /** The id of the link that was created last. */
  newest: string | undefined
  onWithdrawn(id: string): void
}

/** The open reset links of an organization's members, which an owner can withdraw. */
export function ResetLinks({ organization, newest, onWithdrawn }: ResetLinksOptions) {
  const links = usePages(organization, cursor => readResetLinks(organization, cursor))

  // A new link replaces the older one of its member.
  useEffect(() => {
    if (newest !== undefined) void links.refetch()
  }, [newest])

  async function withdraw(id: string) {
    const result = await withdrawResetLink(organization, id)
    if (!result.ok) {
      showToast({ message: result.failure.message })
      // It may have been used, or have expired.
      return links.refetch()
    }
    links.changeItems(items => items.filter(one => one.id !== id))
    onWithdrawn(id)
    showToast({ message: 'Password-reset link withdrawn. It no longer works.' })
  }

  return (
    <section class="section" aria-labelledby="reset-links">
      <h2 id="reset-links">Password-reset links</h2>
      <PagedList
        pages={links}
        empty={
          <p class="note">
            No pending password-reset links. Create one beside the name of a member.
          </p>
        }
      >
        {({ id, person, createdBy, expiresAt }) => (
          <li key={id}>
            <div class="item-main">
              <bdi>{person.name}</bdi>
              <p class="item-details">
                created{' '}
                {createdBy === null ? (
                  'on the server'
                ) : (
                  <>
                    by <bdi>{createdBy}</bdi>
                  </>
                )}{' '}
                · expires <Timestamp atMs={Date.parse(expiresAt)} hasDate />
              </p>
            </div>
            <span class="item-actions">
              <button
                type="button"
                class="quiet-button"
                aria-label={`Withdraw the password-reset link for ${person.name}`}
                onClick={() => withdraw(id)}
              >
                Withdraw
              </button>
            </span>
          </li>
        )}
      </PagedList>
    </section>
  )
}
