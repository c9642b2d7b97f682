import type { Fragment, Tx } from '../db/sql.ts'

/** The settings of a device, as `sessions.device_settings` stores them. */
export interface DeviceSettings {
  label: string
  isOn: boolean
  /** Three nulls if there are no quiet hours. */
  quiet: [from: number | null, to: number | null, timeZone: string | null]
}

/**
 * Deletes subscriptions `d` that work no more, and returns their number. Their settings stay with
 * the session, for the next subscription of the same browser.
 */
export async function deleteSubscriptions(tx: Tx, condition: Fragment): Promise<number> {
  // Locks the sessions first, as a browser does that subscribes again.
  await tx`
    update sessions s set
      device_settings = json_build_object(
        'label', d.label, 'isOn', d.is_on, 'quiet', json_build_array(d.quiet_from, d.quiet_to, d.quiet_zone)
      )
    from push_subscriptions d
    where d.session_id = s.id and ${condition}
  `
  return (await tx`delete from push_subscriptions d where ${condition}`).count
}
