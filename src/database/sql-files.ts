import accessBaseline from '../../sql/baseline/access.sql' with { type: 'text' }
import httpBaseline from '../../sql/baseline/http.sql' with { type: 'text' }
import logBaseline from '../../sql/baseline/log.sql' with { type: 'text' }
import deliveryBaseline from '../../sql/baseline/delivery.sql' with { type: 'text' }
import serverBaseline from '../../sql/baseline/server.sql' with { type: 'text' }
import channelNamesTables from '../../sql/tables/0038_channel_names.sql' with { type: 'text' }
import bellRangesTables from '../../sql/tables/0039_bell_ranges.sql' with { type: 'text' }
import auditWebhooksTables from '../../sql/tables/0040_audit_webhooks.sql' with { type: 'text' }
import exportsTables from '../../sql/tables/0041_exports.sql' with { type: 'text' }
import deliveryTargetsTables from '../../sql/tables/0042_delivery_targets.sql' with { type: 'text' }
import installationIdTables from '../../sql/tables/0043_installation.sql' with { type: 'text' }
import channelQuotaTables from '../../sql/tables/0044_channel_quota.sql' with { type: 'text' }
import storedProvidersTables from '../../sql/tables/0045_stored_providers.sql' with { type: 'text' }
import userIndexTables from '../../sql/tables/0046_user_index.sql' with { type: 'text' }
import deliveryKindsTables from '../../sql/tables/0047_delivery_kinds.sql' with { type: 'text' }
import levelsTables from '../../sql/tables/0048_levels.sql' with { type: 'text' }
import threadsTables from '../../sql/tables/0049_threads.sql' with { type: 'text' }
import hoursTables from '../../sql/tables/0050_hours.sql' with { type: 'text' }
import webhookBodiesTables from '../../sql/tables/0051_webhook_bodies.sql' with { type: 'text' }
import attentionTables from '../../sql/tables/0052_attention.sql' with { type: 'text' }
import shownPushesTables from '../../sql/tables/0053_shown_pushes.sql' with { type: 'text' }
import heartbeatsTables from '../../sql/tables/0054_heartbeats.sql' with { type: 'text' }
import hooksTables from '../../sql/tables/0055_hooks.sql' with { type: 'text' }
import rulesTables from '../../sql/tables/0056_rules.sql' with { type: 'text' }
import questionsTables from '../../sql/tables/0057_questions.sql' with { type: 'text' }
import accountsFunctions from '../../sql/functions/accounts.sql' with { type: 'text' }
import appendFunctions from '../../sql/functions/append.sql' with { type: 'text' }
import clockFunctions from '../../sql/functions/clock.sql' with { type: 'text' }
import countsFunctions from '../../sql/functions/counts.sql' with { type: 'text' }
import deletionFunctions from '../../sql/functions/deletion.sql' with { type: 'text' }
import erasureFunctions from '../../sql/functions/erasure.sql' with { type: 'text' }
import eventsFunctions from '../../sql/functions/events.sql' with { type: 'text' }
import foldedWordsFunctions from '../../sql/functions/folded_words.sql' with { type: 'text' }
import heartbeatsFunctions from '../../sql/functions/heartbeats.sql' with { type: 'text' }
import idempotencyFunctions from '../../sql/functions/idempotency.sql' with { type: 'text' }
import identitiesFunctions from '../../sql/functions/identities.sql' with { type: 'text' }
import installationFunctions from '../../sql/functions/installation.sql' with { type: 'text' }
import of030Functions from '../../sql/functions/of_0_3_0.sql' with { type: 'text' }
import outboxFunctions from '../../sql/functions/outbox.sql' with { type: 'text' }
import projectsFunctions from '../../sql/functions/projects.sql' with { type: 'text' }
import pushFunctions from '../../sql/functions/push.sql' with { type: 'text' }
import quotasFunctions from '../../sql/functions/quotas.sql' with { type: 'text' }
import rateWindowsFunctions from '../../sql/functions/rate_windows.sql' with { type: 'text' }
import searchFunctions from '../../sql/functions/search.sql' with { type: 'text' }
import silencesFunctions from '../../sql/functions/silences.sql' with { type: 'text' }
import stormsFunctions from '../../sql/functions/storms.sql' with { type: 'text' }
import threadsFunctions from '../../sql/functions/threads.sql' with { type: 'text' }
import timersFunctions from '../../sql/functions/timers.sql' with { type: 'text' }
import unicodeFunctions from '../../sql/functions/unicode.sql' with { type: 'text' }
import unreadFunctions from '../../sql/functions/unread.sql' with { type: 'text' }
import usersFunctions from '../../sql/functions/users.sql' with { type: 'text' }
import webhooksFunctions from '../../sql/functions/webhooks.sql' with { type: 'text' }
import droppedFunctions from '../../sql/functions/dropped.sql' with { type: 'text' }
import replaces from '../../sql/baseline/migrations.json' with { type: 'json' }
import { VERSION } from '../base/version.ts'

/**
 * A file of sql/tables. It is additive: servers of earlier versions keep working while it runs and
 * afterwards. A breaking one has a line `-- Oldest server: 0.3.0`, the oldest version that still
 * works.
 */
export interface Migration {
  name: string
  text: string
  /** The checksums of the migrations that it stands for, by their names; by default of itself. */
  replaces?: Readonly<Record<string, string>>
}

/** The functions, triggers and views of a version. They replace those of earlier versions. */
export interface FunctionSet {
  version: string
  files: readonly { name: string; text: string }[]
  /** Drops what earlier versions had, once nothing depends on it. */
  dropped: string
}

/** The release whose tables the baseline makes. Older databases are not upgraded. */
export const BASELINE_VERSION = '0.3.0'

/** The tables of BASELINE_VERSION, in place of the migrations up to it. */
export const BASELINE: Migration = {
  name: 'baseline',
  text: [accessBaseline, httpBaseline, logBaseline, deliveryBaseline, serverBaseline].join('\n'),
  replaces,
}

/**
 * The baseline, and all files of sql/tables in order. The files of a release are never edited.
 */
export const MIGRATIONS: readonly Migration[] = [
  BASELINE,
  { name: '0038_channel_names', text: channelNamesTables },
  { name: '0039_bell_ranges', text: bellRangesTables },
  { name: '0040_audit_webhooks', text: auditWebhooksTables },
  { name: '0041_exports', text: exportsTables },
  { name: '0042_delivery_targets', text: deliveryTargetsTables },
  { name: '0043_installation', text: installationIdTables },
  { name: '0044_channel_quota', text: channelQuotaTables },
  { name: '0045_stored_providers', text: storedProvidersTables },
  { name: '0046_user_index', text: userIndexTables },
  { name: '0047_delivery_kinds', text: deliveryKindsTables },
  { name: '0048_levels', text: levelsTables },
  { name: '0049_threads', text: threadsTables },
  { name: '0050_hours', text: hoursTables },
  { name: '0051_webhook_bodies', text: webhookBodiesTables },
  { name: '0052_attention', text: attentionTables },
  { name: '0053_shown_pushes', text: shownPushesTables },
  { name: '0054_heartbeats', text: heartbeatsTables },
  { name: '0055_hooks', text: hooksTables },
  { name: '0056_rules', text: rulesTables },
  { name: '0057_questions', text: questionsTables },
]

/** All files of sql/functions. */
export const FUNCTIONS: FunctionSet = {
  version: VERSION,
  files: [
    { name: 'accounts', text: accountsFunctions },
    { name: 'append', text: appendFunctions },
    { name: 'clock', text: clockFunctions },
    { name: 'counts', text: countsFunctions },
    { name: 'deletion', text: deletionFunctions },
    { name: 'erasure', text: erasureFunctions },
    { name: 'events', text: eventsFunctions },
    { name: 'folded_words', text: foldedWordsFunctions },
    { name: 'heartbeats', text: heartbeatsFunctions },
    { name: 'idempotency', text: idempotencyFunctions },
    { name: 'identities', text: identitiesFunctions },
    { name: 'installation', text: installationFunctions },
    { name: 'of_0_3_0', text: of030Functions },
    { name: 'outbox', text: outboxFunctions },
    { name: 'projects', text: projectsFunctions },
    { name: 'push', text: pushFunctions },
    { name: 'quotas', text: quotasFunctions },
    { name: 'rate_windows', text: rateWindowsFunctions },
    { name: 'search', text: searchFunctions },
    { name: 'silences', text: silencesFunctions },
    { name: 'storms', text: stormsFunctions },
    { name: 'threads', text: threadsFunctions },
    { name: 'timers', text: timersFunctions },
    { name: 'unicode', text: unicodeFunctions },
    { name: 'unread', text: unreadFunctions },
    { name: 'users', text: usersFunctions },
    { name: 'webhooks', text: webhooksFunctions },
  ],
  dropped: droppedFunctions,
}
