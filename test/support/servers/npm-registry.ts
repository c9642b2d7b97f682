import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { basename, join } from 'node:path'
import { listen } from '../loopback.ts'

/** A package in a registry, with its tarball if it can be downloaded. */
export interface Published {
  /** The folder of the package. */
  folder: string
  /** The path of its tarball. */
  tarball: string
}

/** Starts a registry of npm packages on loopback. It knows no other package. */
export async function startRegistry(packages: readonly Published[]) {
  const requested: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1)
    requested.push(path)
    const file = packages.find(({ tarball }) => basename(tarball) === path)
    if (file) return void response.end(readFileSync(file.tarball))
    const found = packages.find(one => readManifest(one).name === path)
    if (!found) return void response.writeHead(404).end('{}')
    const manifest = readManifest(found)
    const tarball = readFileSync(found.tarball)
    const dist = {
      tarball: `http://${request.headers.host}/${basename(found.tarball)}`,
      integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}`,
    }
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(
      JSON.stringify({
        name: manifest.name,
        'dist-tags': { latest: manifest.version },
        versions: { [manifest.version]: { ...manifest, dist } },
      }),
    )
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}/`,
    /** The names of packages and tarballs that were requested. */
    requested,
    [Symbol.dispose]: () => void server.close(),
  }
}

function readManifest({ folder }: Published): { name: string; version: string } {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}
