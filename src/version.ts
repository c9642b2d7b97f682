import manifest from '../package.json' with { type: 'json' }

/** The version of this program. */
export const VERSION = manifest.version

const { repository }: { repository?: string | { url: string } } = manifest as object

/** Where its source can be had, if package.json says so. */
export const SOURCE_URL = (typeof repository === 'object' ? repository.url : repository)
  ?.replace(/^git\+/, '')
  .replace(/\.git$/, '')
