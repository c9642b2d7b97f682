import accountsTables from '../../sql/tables/0001_accounts.sql' with { type: 'text' }
import keysTables from '../../sql/tables/0002_keys.sql' with { type: 'text' }
import auditTables from '../../sql/tables/0003_audit.sql' with { type: 'text' }
import limitsTables from '../../sql/tables/0004_limits.sql' with { type: 'text' }
import channelsTables from '../../sql/tables/0005_channels.sql' with { type: 'text' }
import identitiesTables from '../../sql/tables/0006_identities.sql' with { type: 'text' }
import eventsTables from '../../sql/tables/0007_events.sql' with { type: 'text' }
import deletionTables from '../../sql/tables/0008_deletion.sql' with { type: 'text' }
import searchTables from '../../sql/tables/0009_search.sql' with { type: 'text' }
import unreadTables from '../../sql/tables/0010_unread.sql' with { type: 'text' }
import usersTables from '../../sql/tables/0011_users.sql' with { type: 'text' }
import erasureTables from '../../sql/tables/0012_erasure.sql' with { type: 'text' }
import outboxTables from '../../sql/tables/0013_outbox.sql' with { type: 'text' }
import pushTables from '../../sql/tables/0014_push.sql' with { type: 'text' }
import webhooksTables from '../../sql/tables/0015_webhooks.sql' with { type: 'text' }
import reaperTables from '../../sql/tables/0016_reaper.sql' with { type: 'text' }
import installationTables from '../../sql/tables/0017_installation.sql' with { type: 'text' }
import clockTables from '../../sql/tables/0018_clock.sql' with { type: 'text' }
import readingTables from '../../sql/tables/0019_reading.sql' with { type: 'text' }
import passkeysTables from '../../sql/tables/0020_passkeys.sql' with { type: 'text' }
import openidTables from '../../sql/tables/0021_openid.sql' with { type: 'text' }
import tokensTables from '../../sql/tables/0022_tokens.sql' with { type: 'text' }
import secondFactorTables from '../../sql/tables/0023_second_factor.sql' with { type: 'text' }
import dashboardTables from '../../sql/tables/0024_dashboard.sql' with { type: 'text' }
import archiveTables from '../../sql/tables/0025_archive.sql' with { type: 'text' }
import deliveriesTables from '../../sql/tables/0026_deliveries.sql' with { type: 'text' }
import pushRefusalsTables from '../../sql/tables/0027_push_refusals.sql' with { type: 'text' }
import serverTables from '../../sql/tables/0028_server.sql' with { type: 'text' }
import statisticsTables from '../../sql/tables/0029_statistics.sql' with { type: 'text' }
import accessTables from '../../sql/tables/0030_access.sql' with { type: 'text' }
import erasedHistoryTables from '../../sql/tables/0031_erased_history.sql' with { type: 'text' }
import resumptionTables from '../../sql/tables/0032_resumption.sql' with { type: 'text' }
import searchRulesTables from '../../sql/tables/0033_search_rules.sql' with { type: 'text' }
import projectStatisticsTables from '../../sql/tables/0034_project_statistics.sql' with { type: 'text' }
import userWordsTables from '../../sql/tables/0035_user_words.sql' with { type: 'text' }
import lookupStatisticsTables from '../../sql/tables/0036_lookup_statistics.sql' with { type: 'text' }
import repeatedErasureTables from '../../sql/tables/0037_erasure.sql' with { type: 'text' }
import channelNamesTables from '../../sql/tables/0038_channel_names.sql' with { type: 'text' }
import bellRangesTables from '../../sql/tables/0039_bell_ranges.sql' with { type: 'text' }
import auditWebhooksTables from '../../sql/tables/0040_audit_webhooks.sql' with { type: 'text' }
import exportsTables from '../../sql/tables/0041_exports.sql' with { type: 'text' }
import deliveryTargetsTables from '../../sql/tables/0042_delivery_targets.sql' with { type: 'text' }
import installationIdTables from '../../sql/tables/0043_installation.sql' with { type: 'text' }
import channelQuotaTables from '../../sql/tables/0044_channel_quota.sql' with { type: 'text' }
import storedProvidersTables from '../../sql/tables/0046_stored_providers.sql' with { type: 'text' }
import accountsFunctions from '../../sql/functions/accounts.sql' with { type: 'text' }
import appendFunctions from '../../sql/functions/append.sql' with { type: 'text' }
import auditFunctions from '../../sql/functions/audit.sql' with { type: 'text' }
import clockFunctions from '../../sql/functions/clock.sql' with { type: 'text' }
import countsFunctions from '../../sql/functions/counts.sql' with { type: 'text' }
import deletionFunctions from '../../sql/functions/deletion.sql' with { type: 'text' }
import erasureFunctions from '../../sql/functions/erasure.sql' with { type: 'text' }
import eventsFunctions from '../../sql/functions/events.sql' with { type: 'text' }
import idempotencyFunctions from '../../sql/functions/idempotency.sql' with { type: 'text' }
import identitiesFunctions from '../../sql/functions/identities.sql' with { type: 'text' }
import installationFunctions from '../../sql/functions/installation.sql' with { type: 'text' }
import limitsFunctions from '../../sql/functions/limits.sql' with { type: 'text' }
import locksFunctions from '../../sql/functions/locks.sql' with { type: 'text' }
import of020Functions from '../../sql/functions/of_0_2_0.sql' with { type: 'text' }
import of030Functions from '../../sql/functions/of_0_3_0.sql' with { type: 'text' }
import outboxFunctions from '../../sql/functions/outbox.sql' with { type: 'text' }
import projectsFunctions from '../../sql/functions/projects.sql' with { type: 'text' }
import pushFunctions from '../../sql/functions/push.sql' with { type: 'text' }
import searchFunctions from '../../sql/functions/search.sql' with { type: 'text' }
import unicodeFunctions from '../../sql/functions/unicode.sql' with { type: 'text' }
import unreadFunctions from '../../sql/functions/unread.sql' with { type: 'text' }
import usersFunctions from '../../sql/functions/users.sql' with { type: 'text' }
import webhooksFunctions from '../../sql/functions/webhooks.sql' with { type: 'text' }
import wordsFunctions from '../../sql/functions/words.sql' with { type: 'text' }
import droppedFunctions from '../../sql/functions/dropped.sql' with { type: 'text' }
import { VERSION } from '../base/version.ts'

/**
 * A file of sql/tables. It is additive: servers of earlier versions keep working while it runs and
 * afterwards. A breaking one has a line `-- Oldest server: 0.3.0`, the oldest version that still
 * works.
 */
export interface Migration {
  name: string
  text: string
}

/** The functions, triggers and views of a version. They replace those of earlier versions. */
export interface FunctionSet {
  version: string
  files: readonly { name: string; text: string }[]
  /** Drops what earlier versions had, once nothing depends on it. */
  dropped: string
}

/** All files of sql/tables in order. The files of a release are never edited. */
export const MIGRATIONS: readonly Migration[] = [
  { name: '0001_accounts', text: accountsTables },
  { name: '0002_keys', text: keysTables },
  { name: '0003_audit', text: auditTables },
  { name: '0004_limits', text: limitsTables },
  { name: '0005_channels', text: channelsTables },
  { name: '0006_identities', text: identitiesTables },
  { name: '0007_events', text: eventsTables },
  { name: '0008_deletion', text: deletionTables },
  { name: '0009_search', text: searchTables },
  { name: '0010_unread', text: unreadTables },
  { name: '0011_users', text: usersTables },
  { name: '0012_erasure', text: erasureTables },
  { name: '0013_outbox', text: outboxTables },
  { name: '0014_push', text: pushTables },
  { name: '0015_webhooks', text: webhooksTables },
  { name: '0016_reaper', text: reaperTables },
  { name: '0017_installation', text: installationTables },
  { name: '0018_clock', text: clockTables },
  { name: '0019_reading', text: readingTables },
  { name: '0020_passkeys', text: passkeysTables },
  { name: '0021_openid', text: openidTables },
  { name: '0022_tokens', text: tokensTables },
  { name: '0023_second_factor', text: secondFactorTables },
  { name: '0024_dashboard', text: dashboardTables },
  { name: '0025_archive', text: archiveTables },
  { name: '0026_deliveries', text: deliveriesTables },
  { name: '0027_push_refusals', text: pushRefusalsTables },
  { name: '0028_server', text: serverTables },
  { name: '0029_statistics', text: statisticsTables },
  { name: '0030_access', text: accessTables },
  { name: '0031_erased_history', text: erasedHistoryTables },
  { name: '0032_resumption', text: resumptionTables },
  { name: '0033_search_rules', text: searchRulesTables },
  { name: '0034_project_statistics', text: projectStatisticsTables },
  { name: '0035_user_words', text: userWordsTables },
  { name: '0036_lookup_statistics', text: lookupStatisticsTables },
  { name: '0037_erasure', text: repeatedErasureTables },
  { name: '0038_channel_names', text: channelNamesTables },
  { name: '0039_bell_ranges', text: bellRangesTables },
  { name: '0040_audit_webhooks', text: auditWebhooksTables },
  { name: '0041_exports', text: exportsTables },
  { name: '0042_delivery_targets', text: deliveryTargetsTables },
  { name: '0043_installation', text: installationIdTables },
  { name: '0044_channel_quota', text: channelQuotaTables },
  { name: '0046_stored_providers', text: storedProvidersTables },
]

/** All files of sql/functions. */
export const FUNCTIONS: FunctionSet = {
  version: VERSION,
  files: [
    { name: 'accounts', text: accountsFunctions },
    { name: 'append', text: appendFunctions },
    { name: 'audit', text: auditFunctions },
    { name: 'clock', text: clockFunctions },
    { name: 'counts', text: countsFunctions },
    { name: 'deletion', text: deletionFunctions },
    { name: 'erasure', text: erasureFunctions },
    { name: 'events', text: eventsFunctions },
    { name: 'idempotency', text: idempotencyFunctions },
    { name: 'identities', text: identitiesFunctions },
    { name: 'installation', text: installationFunctions },
    { name: 'limits', text: limitsFunctions },
    { name: 'locks', text: locksFunctions },
    { name: 'of_0_2_0', text: of020Functions },
    { name: 'of_0_3_0', text: of030Functions },
    { name: 'outbox', text: outboxFunctions },
    { name: 'projects', text: projectsFunctions },
    { name: 'push', text: pushFunctions },
    { name: 'search', text: searchFunctions },
    { name: 'unicode', text: unicodeFunctions },
    { name: 'unread', text: unreadFunctions },
    { name: 'users', text: usersFunctions },
    { name: 'webhooks', text: webhooksFunctions },
    { name: 'words', text: wordsFunctions },
  ],
  dropped: droppedFunctions,
}
