import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../docs.ts'
import { findFreePort } from '../loopback.ts'
import { makeFolder } from '../scratch.ts'
import { until } from '../until.ts'

const START_MS = 60_000

/** One series of the result of a query. */
interface Sample {
  metric: Record<string, string>
  value: [seconds: number, value: string]
}

/** Debian's Prometheus with the files of docs/monitoring, and a scratch folder. */
export interface Prometheus extends AsyncDisposable {
  /** Evaluates an expression. Rejects with the message of Prometheus if it does not parse. */
  query(expr: string): Promise<Sample[]>
  /** Returns the alert rules with their state. */
  listRules(): Promise<{ name: string; health: string; state: string }[]>
}

/** Starts Prometheus. It scrapes `target`, a host and port, every second. */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const folder = makeFolder()
  cpSync(join(ROOT, 'docs/monitoring'), folder, { recursive: true })
  const file = join(folder, 'prometheus.yml')
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replaceAll('15s', '1s').replace('127.0.0.1:9464', target),
  )
  const address = `127.0.0.1:${await findFreePort()}`
  const child = spawn(
    'prometheus',
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const exited = once(child, 'exit')
  let log = ''
  child.stderr.on('data', chunk => (log += chunk))
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await Promise.race([
    until(isReady, START_MS),
    exited.then(() => Promise.reject(new Error(`Prometheus did not start:\n${log}`))),
  ])

  async function get<Data>(path: string): Promise<Data> {
    const response = await fetch(`http://${address}/api/v1/${path}`)
    const answer = (await response.json()) as { data: Data; error?: string }
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer.data
  }
  return {
    async query(expr) {
      const { result } = await get<{ result: Sample[] }>(`query?query=${encodeURIComponent(expr)}`)
      return result
    },
    async listRules() {
      const { groups } = await get<{
        groups: { rules: Awaited<ReturnType<Prometheus['listRules']>> }[]
      }>('rules')
      return groups.flatMap(({ rules }) => rules)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
    },
  }
}
