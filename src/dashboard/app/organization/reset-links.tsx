import { useEffect } from 'preact/hooks'
import { PagedList, usePages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showResult } from '../components/toast.tsx'
import { request } from '../request.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { Section } from '../components/section.tsx'

interface ResetLinksOptions {
  /** The id of the organization. */
  organization: string
  /** The id of the link that was created last. */
  newest: string | undefined
  onWithdrawn(id: string): void
}

/** The open reset links of an organization's members, which an owner can withdraw. */
export function ResetLinks({ organization, newest, onWithdrawn }: ResetLinksOptions) {
  const links = usePages('GET /api/organizations/:organizationId/reset-links', {
    organizationId: organization,
    limit: 50,
  })

  // A new link replaces the older one of its member.
  useEffect(() => {
    if (newest !== undefined) void links.refetch()
  }, [newest])

  async function withdraw(id: string) {
    const place = { organizationId: organization, resetLinkId: id }
    const result = await request(
      'DELETE /api/organizations/:organizationId/reset-links/:resetLinkId',
      place,
    )
    // It may have been used, or have expired.
    if (!showResult(result, 'Password-reset link withdrawn. It no longer works.'))
      return links.refetch()
    links.changeItems(items => items.filter(one => one.id !== id))
    onWithdrawn(id)
  }

  return (
    <Section id="reset-links" title="Password-reset links">
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
                · expires <Moment at={expiresAt} />
              </p>
            </div>
            <span class="item-actions">
              <QuietButton
                aria-label={`Withdraw the password-reset link for ${person.name}`}
                onClick={() => withdraw(id)}
              >
                Withdraw
              </QuietButton>
            </span>
          </li>
        )}
      </PagedList>
    </Section>
  )
}
