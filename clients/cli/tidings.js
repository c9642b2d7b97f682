#!/usr/bin/env node
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

// Runs the executable of this platform. It is in an optional dependency, of which the package
// manager installs one.
const name = `@tidings/cli-${process.platform}-${process.arch}`
const child = spawn(findExecutable(), process.argv.slice(2), { stdio: 'inherit' })
child.on('error', error => fail(`The executable of ${name} cannot run: ${error.message}`))
child.on('exit', (code, signal) => {
  process.removeAllListeners(signal)
  if (signal) process.kill(process.pid, signal)
  else process.exit(code)
})
process.on('SIGTERM', () => child.kill('SIGTERM'))
// The terminal sends these to the executable, too.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {})

function findExecutable() {
  try {
    return createRequire(import.meta.url).resolve(`${name}/tidings`)
  } catch {
    const manifest = readFileSync(new URL('package.json', import.meta.url), 'utf8')
    const { optionalDependencies = {} } = JSON.parse(manifest)
    const names = Object.keys(optionalDependencies)
    const platforms = names.map(one => one.replace('@tidings/cli-', '')).join(', ')
    return names.includes(name)
      ? fail(`${name} is not installed. Run: npm install --include=optional @tidings/cli`)
      : fail(`Tidings has no executable for this platform. It has one for ${platforms}.`)
  }
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
