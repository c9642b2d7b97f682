import type { ServerInfo } from '../../server-schema.ts'
import { toSize } from './sizes.ts'

type Standby = NonNullable<ServerInfo['database']['standbys']>[number]

const MAX_LAG_S = 5

/** The standbys of the database, and what the promotion of each would lose. Nothing without one. */
export function Standbys({ standbys }: Pick<ServerInfo['database'], 'standbys'>) {
  if (standbys?.length === 0) return null
  return (
    <div>
      <dt>Standbys</dt>
      {standbys ? (
        standbys.map(standby => (
          <dd>
            <bdi>{standby.name}</bdi>{' '}
            {standby.lagSeconds > MAX_LAG_S && <span class="badge badge-bad">Behind</span>}
            <p class="item-details">{toDetails(standby)}</p>
          </dd>
        ))
      ) : (
        <dd>
          Unknown
          <p class="item-details">
            The user of the database may not see them. Grant it pg_monitor.
          </p>
        </dd>
      )}
    </div>
  )
}

function toDetails({ isSynchronous, lagBytes, lagSeconds }: Standby): string {
  if (isSynchronous) return 'Synchronous. Its promotion loses no accepted event.'
  if (lagBytes === 0) return 'Asynchronous. It has everything now.'
  const seconds = (Math.ceil(lagSeconds * 10) / 10).toLocaleString()
  return `Asynchronous. Its promotion now would lose the last ${seconds} s (${toSize(lagBytes)}).`
}
