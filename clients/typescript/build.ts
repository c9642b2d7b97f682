import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'
import { renderSchemaTypes } from './schema-types.ts'

const FOLDER = import.meta.dirname
const ENTRY = join(FOLDER, 'src/client.ts')
const SCHEMA_TYPES = join(FOLDER, 'src/schema.ts')

if (import.meta.main) {
  const types = await renderSchemaTypes()
  if (readFileSync(SCHEMA_TYPES, 'utf8') !== types) writeFileSync(SCHEMA_TYPES, types)
  await buildClient(join(FOLDER, 'dist'))
}

/** Writes `client.js`, one ES module, and `client.d.ts` into a folder. Neither has an import. */
export async function buildClient(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const { outputs } = await Bun.build({ entrypoints: [ENTRY], target: 'browser' })
  writeFileSync(join(folder, 'client.js'), await outputs[0]!.text())
  const compilerOptions = { allowImportingTsExtensions: true }
  const bundle = await rollup({ input: ENTRY, plugins: [dts({ compilerOptions })] })
  await bundle.write({ file: join(folder, 'client.d.ts') })
  await bundle.close()
}
