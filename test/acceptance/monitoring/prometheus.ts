import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { freePorts } from '../../../worker/free-ports.ts'
import { findProgram } from '../programs.ts'
import { until } from '../../system/export/world.ts'

/** Runs `promtool`, which is Prometheus's own reader of rules; throws what it says where they are wrong. */
export async function promtool(words: readonly string[], { cwd }: { cwd: string }): Promise<string> {
  const program = findProgram('promtool')
  const { stdout } = await promisify(execFile)(program, words, { cwd })
  return stdout
}

/** A Prometheus of its own with this configuration, gone with the test. */
export async function startPrometheus({ config }: { config: string }) {
  const program = findProgram('prometheus')
  const folder = await mkdtemp(join(tmpdir(), 'prometheus-'))
  const file = join(folder, 'prometheus.yml')
  await writeFile(file, config)
  const [port] = await freePorts(1)
  const listen = `127.0.0.1:${port}`
  const words = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=${listen}`,
  ]
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const said: string[] = []
  child.stderr.on('data', (text: Buffer) => said.push(text.toString()))
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  })

  /** What its interface answers under a path of `/api/v1`. */
  async function ask<T>(path: string): Promise<T> {
    const response = await fetch(`http://${listen}/api/v1/${path}`)
    const { data } = (await response.json()) as { data: T }
    return data
  }

  await until(async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended: ${said.join('')}`)
    return await fetch(`http://${listen}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return {
    ask,
    /** The samples of a query now. */
    async query(text: string): Promise<{ metric: Record<string, string>; value: [number, string] }[]> {
      const path = `query?${new URLSearchParams({ query: text }).toString()}`
      return (await ask<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(path))
        .result
    },
  }
}
