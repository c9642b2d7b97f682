import { ActionButton } from '../components/action-button.tsx'
import { Item } from '../components/item.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Section } from '../components/section.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'

interface ResetLinksOptions {
  /** The id of the organization. */
  organization: string
  onWithdrawn(id: string): void
}

/** The open reset links of an organization's members, which an owner can withdraw. */
export function ResetLinks({ organization, onWithdrawn }: ResetLinksOptions) {
  const place = { organizationId: organization }
  const links = usePages('GET /api/organizations/:organizationId/reset-links', {
    ...place,
    limit: 50,
  })
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
          <Item
            key={id}
            title={<bdi>{person.name}</bdi>}
            details={[
              <>
                created{' '}
                {createdBy === null ? (
                  'on the server'
                ) : (
                  <>
                    by <bdi>{createdBy}</bdi>
                  </>
                )}
              </>,
              <>
                expires <Moment at={expiresAt} />
              </>,
            ]}
          >
            <ActionButton
              action="Withdraw"
              label={`Withdraw the password-reset link for ${person.name}`}
              send={async () => {
                const result = await request(
                  'DELETE /api/organizations/:organizationId/reset-links/:resetLinkId',
                  { ...place, resetLinkId: id },
                )
                // It may have been used, or have expired.
                void links.refetch()
                return result
              }}
              onDone={() => {
                showToast('Password-reset link withdrawn. It no longer works.')
                onWithdrawn(id)
              }}
            />
          </Item>
        )}
      </PagedList>
    </Section>
  )
}
