import manifest from '../package.json' with { type: 'json' }

/** The version of this program. */
export const VERSION = manifest.version

/** The URL of the source repository. */
export const SOURCE_URL = manifest.homepage
