import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * The licences whose terms an AGPL-3.0-only program can meet when it contains the part, by SPDX id.
 * WebKit and TinyCC name theirs in words.
 */
const COMPATIBLE: ReadonlySet<string> = new Set([
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ICU', 'ISC', 'MIT', 'MPL-2.0'],
  ...['LGPL-2.0-only', 'LGPL-2.1-only', 'LGPL-2.1-or-later', 'PostgreSQL', 'Unicode-3.0'],
  ...['Unicode-DFS-2016', 'Unlicense', 'X11', 'Zlib'],
])

/** Lines of the standard texts that stand for the names of the copyright holders. */
const PLACEHOLDER =
  /^Copyright \(c\) (<year>|YEAR by|\d{4}-\d{4} by Internet |\d{4} X Cons).*\n+/gim

/**
 * Throws unless the program can contain a part under this licence, which is an SPDX id or several
 * joined by OR or AND.
 */
export function checkLicence(name: string, licence: string): void {
  const isCompatible = licence
    .replace(/[()]/g, '')
    .split(' OR ')
    .some(choice => choice.split(' AND ').every(id => COMPATIBLE.has(id)))
  if (isCompatible) return
  throw new Error(
    `${name} is under ${licence}, which is not known to go with AGPL-3.0-only. Replace it, or add the licence to packaging/sbom/licence-texts.ts.`,
  )
}

/** Returns the standard text of the licence with an SPDX id, without names of copyright holders. */
export function readStandardText(id: string): string {
  const path = fileURLToPath(import.meta.resolve(`spdx-license-list/licenses/${id}.json`))
  const { licenseText } = JSON.parse(readFileSync(path, 'utf8')) as { licenseText: string }
  return licenseText.replace(PLACEHOLDER, '')
}
