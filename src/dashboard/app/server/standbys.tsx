import type { ServerInfo } from '../../../accounts/schema.ts'
import { getLocale, t, toNumber } from '../locales/translate.tsx'
import { toSize } from './sizes.ts'

type Standby = NonNullable<ServerInfo['database']['standbys']>[number]

const MAX_LAG_S = 5

/** The standbys of the database, and what the promotion of each would lose. Nothing without one. */
export function Standbys({ standbys }: Pick<ServerInfo['database'], 'standbys'>) {
  if (standbys?.length === 0) return null
  return (
    <div>
      <dt>{t('server.standbys')}</dt>
      {standbys ? (
        standbys.map(standby => (
          <dd>
            <bdi>{standby.name}</bdi>{' '}
            {standby.lagSeconds > MAX_LAG_S && (
              <span class="badge badge-bad">{t('server.standbyBehind')}</span>
            )}
            <p class="item-details">{toDetails(standby)}</p>
          </dd>
        ))
      ) : (
        <dd>
          {t('server.standbysHidden')}
          <p class="item-details">{t('server.standbysHiddenReason')}</p>
        </dd>
      )}
    </div>
  )
}

function toDetails({ isSynchronous, lagBytes, lagSeconds }: Standby): string {
  if (isSynchronous) return t('server.standbySynchronous')
  if (lagBytes === 0) return t('server.standbyCurrent')
  const seconds = toNumber(Math.ceil(lagSeconds * 10) / 10)
  return t('server.standbyAsynchronous', { seconds, size: toSize(lagBytes, getLocale()) })
}
