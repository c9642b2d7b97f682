import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }

// Prints the formula for Homebrew, with the checksums of a release:
//   bun packaging/homebrew/formula.ts dist/SHA256SUMS > tidings.rb
const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('Pass the path of SHA256SUMS.')
const sums = new Map(
  readFileSync(file, 'utf8')
    .split('\n')
    .map(line => line.split(/ [ *]/).reverse() as [string, string]),
)
const template = readFileSync(join(import.meta.dirname, 'tidings.rb'), 'utf8')
const formula = template
  .replaceAll('@VERSION@', manifest.version)
  .replaceAll('@REPOSITORY@', manifest.repository)
  .replace(/@SHA256 (.+?)@/g, (_, name: string) => {
    const sum = sums.get(name)
    if (sum === undefined) throw new Error(`${file} has no checksum of ${name}.`)
    return sum
  })
process.stdout.write(formula)
