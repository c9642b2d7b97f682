import { ActionButton } from '../components/action-button.tsx'
import { Item, Section } from '../components/item.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import type { ShownLink } from './link-once.tsx'

interface ResetLinksOptions {
  /** The id of the organization. */
  organization: string
  /** The newest link, after which the list is loaded again. */
  link: ShownLink
}

/** The open reset links of an organization's members, which an owner can withdraw. */
export function ResetLinks({ organization, link }: ResetLinksOptions) {
  const place = { organizationId: organization }
  const links = usePages(
    'GET /api/organizations/:organizationId/reset-links',
    { ...place, limit: 50 },
    { when: link },
  )
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
              <Moment word="expires" at={expiresAt} />,
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
                if (link.value?.id === id) link.value = undefined
              }}
            />
          </Item>
        )}
      </PagedList>
    </Section>
  )
}
