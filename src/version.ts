import manifest from '../package.json' with { type: 'json' }

/** The version of this program. */
export const VERSION = manifest.version

const { repository }: { repository?: string | { url: string } } = manifest as object

/** The URL of the source repository, if package.json has one. */
export const SOURCE_URL = (typeof repository === 'object' ? repository.url : repository)
  ?.replace(/^git\+/, '')
  .replace(/\.git$/, '')
