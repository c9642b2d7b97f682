import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import manifest from '../../package.json' with { type: 'json' }

// Packs an executable of Linux as a package for Debian and Ubuntu:
//   bun run package:deb [--executable dist/tidings] [--architecture amd64] [--outfile dist/…deb]
// The same executable gives the same bytes. The licences beside the executable go into the package.
const { version, repository, author } = manifest
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const { values } = parseArgs({
  options: {
    executable: { type: 'string', default: 'dist/tidings' },
    architecture: { type: 'string', default: ARCHITECTURES[process.arch] ?? process.arch },
    outfile: { type: 'string' },
  },
})
const { executable, architecture } = values
const outfile = resolve(values.outfile ?? `dist/tidings_${version}_${architecture}.deb`)
const date = readReleaseDate()
const work = mkdtempSync(join(tmpdir(), 'tidings-deb-'))
try {
  // mkdtemp makes a folder that only its owner may read.
  chmodSync(work, 0o755)
  const path = (name: string) => join(work, name)
  copy(executable, 'usr/bin/tidings', 0o755)
  write('lib/systemd/system/tidings.service', read('tidings.service'))
  write('etc/tidings/tidings.toml', read('tidings.toml'), 0o640)
  write('usr/share/man/man1/tidings.1.gz', compress(fill(read('tidings.1'))))
  copy(`${executable}.licences.txt`, 'usr/share/doc/tidings/copyright', 0o644)
  write('usr/share/doc/tidings/changelog.gz', compress(toChangelog()))
  const bytes = readdirSync(work, { recursive: true, encoding: 'utf8' })
    .map(name => statSync(path(name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
  write('DEBIAN/control', fill(read('control')).replace('@SIZE@', String(Math.ceil(bytes / 1024))))
  write('DEBIAN/conffiles', '/etc/tidings/tidings.toml\n')
  for (const script of ['postinst', 'prerm', 'postrm'])
    write(`DEBIAN/${script}`, read(script), 0o755)
  for (const name of readdirSync(work, { recursive: true, encoding: 'utf8' }))
    if (statSync(path(name)).isDirectory()) chmodSync(path(name), 0o755)

  // Debian has read zstd since version 12. xz saves a tenth, and takes a minute.
  const args = ['--root-owner-group', '-Zzstd', '--build', work, outfile]
  const { status } = spawnSync('dpkg-deb', args, {
    env: { PATH: process.env['PATH'], SOURCE_DATE_EPOCH: String(date.getTime() / 1000) },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0) throw new Error('dpkg-deb failed. See the output above.')
} finally {
  rmSync(work, { recursive: true })
}

/** Reads a file of this folder. */
function read(name: string): string {
  return readFileSync(join(import.meta.dirname, name), 'utf8')
}

function write(name: string, content: string | Buffer, mode = 0o644): void {
  const file = join(work, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  chmodSync(file, mode)
}

function copy(from: string, name: string, mode: number): void {
  const file = join(work, name)
  mkdirSync(dirname(file), { recursive: true })
  cpSync(from, file)
  chmodSync(file, mode)
}

function fill(text: string): string {
  return text
    .replaceAll('@VERSION@', version)
    .replaceAll('@ARCHITECTURE@', architecture)
    .replaceAll('@REPOSITORY@', repository)
    .replaceAll('@MAINTAINER@', author)
    .replaceAll('@DATE@', date.toISOString().slice(0, 10))
}

function compress(text: string): Buffer {
  return gzipSync(text, { level: 9 })
}

/**
 * Returns the date of this version in CHANGELOG.md, at midnight UTC. A version that is not released
 * yet has the date of the latest one.
 */
function readReleaseDate(): Date {
  const changelog = readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8')
  const releases = [...changelog.matchAll(/^## \[(.+)\] - (\d{4}-\d\d-\d\d)$/gm)]
  const [, , day] = releases.find(([, released]) => released === version) ?? releases[0] ?? []
  if (day === undefined) throw new Error('CHANGELOG.md has no date of a release.')
  return new Date(`${day}T00:00:00Z`)
}

/** Returns the changelog in Debian's form. */
function toChangelog(): string {
  const at = date.toUTCString().replace('GMT', '+0000')
  return `tidings (${version}) stable; urgency=medium

  * Tidings ${version}. The changes: ${repository}/blob/v${version}/CHANGELOG.md

 -- ${author}  ${at}
`
}
