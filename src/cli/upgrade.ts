import { existsSync } from 'node:fs'
import { Type, type Static } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { toReason } from '../base/errors.ts'
import { httpGet } from '../base/http-get.ts'
import { toSelfCommand } from '../base/platform.ts'
import { compareVersions, VERSION } from '../base/version.ts'
import { command, UsageError } from './command.ts'
import { readSettings } from './settings.ts'

const TIMEOUT_MS = 10_000
const Version = Type.String({ pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}$' })
/** The part of the release index that this command reads. */
const Index = Type.Object({
  releases: Type.Array(
    Type.Object({
      version: Version,
      date: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\d$' }),
      oldestServer: Type.Optional(Version),
    }),
  ),
})
const index = TypeCompiler.Compile(Index)
type Release = Static<typeof Index>['releases'][number]

/** The steps that replace the program, by the way in which it was installed. */
const STEPS = {
  checkout: 'git pull, then restart the server',
  container: 'build or pull the image of the new version, and start the container from it',
  package: 'install the new .deb: apt install ./tidings_*.deb',
  executable: 'replace the executable, and restart the server',
}

export const upgrade = command({
  name: 'upgrade',
  description:
    'Compare this version with the release index at RELEASE_INDEX_URL. It changes nothing.',
  examples: [
    'RELEASE_INDEX_URL=https://example.com/tidings/releases.json tidings upgrade --check',
    'tidings upgrade --check --json',
  ],
  args: { check: { type: 'boolean', description: 'Look for newer versions', default: false } },
  async run({ check }) {
    if (!check) throw new UsageError('Tidings does not replace itself. Use --check.')
    const { releaseIndexUrl } = readSettings().config
    if (releaseIndexUrl === undefined) {
      throw new UsageError(
        'No release index is configured. Set RELEASE_INDEX_URL to the address of a releases.json.',
      )
    }
    const newer = (await fetchReleases(releaseIndexUrl))
      .filter(({ version }) => compareVersions(version, VERSION) > 0)
      .sort((a, b) => compareVersions(a.version, b.version))
    const breaking = newer.filter(isBreaking)
    const way = findWay()
    const latest = newer.at(-1)
    const steps = latest ? ['tidings backup', STEPS[way]] : []
    return {
      json: { version: VERSION, newer, isBreaking: breaking.length > 0, way, steps },
      text: latest
        ? [
            `Tidings ${latest.version} is available. This is ${VERSION}.`,
            ...newer.map(describe),
            breaking.length > 0
              ? 'Servers of this version stop working during the upgrade. Stop them first.'
              : 'Servers of this version stay ready during the upgrade.',
            `Back up, then ${STEPS[way]}.`,
          ].join('\n')
        : `Tidings ${VERSION} is the latest version.`,
    }
  },
})

function describe(release: Release): string {
  const { version, date, oldestServer } = release
  return `  ${version}  ${date}${isBreaking(release) ? `  stops servers older than ${oldestServer}` : ''}`
}

/** Returns true if a server of this version does not work on the schema of the release. */
function isBreaking({ oldestServer }: Release): boolean {
  return oldestServer !== undefined && compareVersions(oldestServer, VERSION) > 0
}

async function fetchReleases(url: string): Promise<Release[]> {
  const fail = (reason: string) =>
    new Error(`The release index at ${url} cannot be read: ${reason}. Check RELEASE_INDEX_URL.`)
  const { status, body } = await httpGet(url, { timeoutMs: TIMEOUT_MS }).catch((error: unknown) => {
    throw fail(toReason(error))
  })
  if (status !== 200) throw fail(`it responds with ${status}`)
  const found = parseJson(body)
  if (!index.Check(found)) throw fail('it is not a releases.json of at most 64 KB')
  return found.releases
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns how this program was installed. */
function findWay(): keyof typeof STEPS {
  if (toSelfCommand().length > 1) return 'checkout'
  if (existsSync('/.dockerenv') || process.env['KUBERNETES_SERVICE_HOST'] !== undefined)
    return 'container'
  return existsSync('/var/lib/dpkg/info/tidings.list') ? 'package' : 'executable'
}
