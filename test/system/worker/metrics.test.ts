import { execFileSync } from 'node:child_process'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import {
  connectTemporal,
  createWorld,
  manifestOf,
  local,
  startCommand,
  startRun,
  until,
  type World,
} from '../export/world.ts'
import { addonsCsv, putFile, quick, startImport } from '../import/world.ts'
import { mayMount } from '../export/full-disk.ts'
import { scrape, sumOf } from './scrape.ts'

const served = { CONNECTOR_METRICS_ADDRESS: '127.0.0.1:0' } as const

/** A worker in a process of its own, and where it serves its metrics. */
async function startServing(world: World, command = 'worker', env: Record<string, string> = {}) {
  const worker = startCommand(world, [command], { env: { ...served, ...env } })
  await worker.says('/metrics')
  const [, url = ''] = /(http:[^\s"]+)\/metrics/.exec(worker.texts.stderr) ?? []
  return { ...worker, url }
}

/** What the stand-in answered, by operation and status: `none` where it tore the connection down. */
function answers(world: World): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { method, url, status, faults = [] } of world.sandbox.control.requests()) {
    const name = url.split(/[/?]/)[1] ?? ''
    const operation = method === 'GET' ? `list ${name}` : `create ${name.replace(/s$/, '')}`
    const cut = faults.some((fault) => fault === 'reset' || fault === 'cutBody')
    const key = `${operation} ${cut ? 'none' : (status ?? 'none')}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

interface LogLine {
  message: string
  run?: string
  resource?: string
  page?: number
}

function linesOf(stderr: string): LogLine[] {
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line) as LogLine)
}

describe('the metrics of a worker', () => {
  test(
    'move while a run is under way, and agree at its end with its manifests and with the service',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({
        counts: { customers: 3000, subscriptions: 300, plans: 20, retentions: 400 },
        faults: [
          { kind: 'latency', ms: 20 },
          { kind: 'error', rate: 0.03 },
          { kind: 'reset', rate: 0.03 },
        ],
      })
      const worker = await startServing(world, 'worker', { CONNECTOR_LOG_LEVEL: 'debug' })
      const before = Date.now() / 1000
      const run = await startRun({ client: await connectTemporal(), world })
      const seen: number[] = []
      await until(async () => {
        seen.push(sumOf(await scrape(worker.url), 'connector_records_total'))
        return (seen.at(-1) ?? 0) > 1000
      })
      const report = await run.result()
      expect(report.verdict).toBe('proven')
      const samples = await scrape(worker.url)

      for (const resource of ['customers', 'subscriptions', 'plans', 'retentions'] as const) {
        const manifest = await manifestOf(report, resource)
        expect(sumOf(samples, 'connector_records_total', { resource })).toBe(manifest.records)
        expect(sumOf(samples, 'connector_pages_total', { resource })).toBe(manifest.requests)
        const proven = sumOf(samples, 'connector_last_proven_timestamp_seconds', { resource })
        expect(proven).toBeGreaterThan(before)
        expect(proven).toBeLessThan(Date.now() / 1000 + 1)
        const published = { resource, destination: 'csv', verdict: 'proven' }
        expect(sumOf(samples, 'connector_exports_total', published)).toBe(1)
        expect(sumOf(samples, 'connector_publish_seconds_count', { resource })).toBe(1)
      }
      const requests = samples.filter(({ name }) => name === 'connector_requests_total')
      const counted = requests.map(({ labels, value }) => [
        `${labels['operation']} ${labels['status']}`,
        value,
      ])
      expect(Object.fromEntries(counted)).toEqual(answers(world))
      const all = world.sandbox.control.counters().requests
      expect(sumOf(samples, 'connector_rate_wait_seconds_count')).toBe(all)
      expect(sumOf(samples, 'connector_info', { workspace: world.workspace, mode: 'live' })).toBe(1)
      expect(sumOf(samples, 'temporal_num_pollers')).toBeGreaterThan(0)
      // The SDK counts a moment after Temporal knows the result.
      await until(async () => sumOf(await scrape(worker.url), 'temporal_workflow_completed') > 0)
      expect(Math.max(...seen)).toBeLessThan(3720)

      // The log says of each request whose it was, and of each failed one that it failed.
      await until(() => linesOf(worker.texts.stderr).some(({ message }) => message === 'ended'))
      const lines = linesOf(worker.texts.stderr)
      const ofRun = lines.filter((line) => line.run === run.workflowId)
      const pages = ofRun.filter(({ message, page }) => message === 'request' && page !== undefined)
      expect(new Set(pages.map(({ resource }) => resource)).size).toBe(4)
      // On a busy machine, the SDK warns of other things.
      const failed = lines.filter(({ message }) =>
        ['no complete answer', 'a request failed'].includes(message),
      )
      const faults = Object.entries(answers(world)).filter(([key]) => !key.endsWith(' 200'))
      expect(failed.length).toBe(faults.reduce((sum, [, count]) => sum + count, 0))
      expect(ofRun).toContainEqual(expect.objectContaining({ message: 'ended', verdict: 'proven' }))
      expect(ofRun.filter(({ message }) => message === 'published')).toHaveLength(4)
      expect(worker.texts.stderr).not.toContain(world.sandbox.token)
    },
  )

  test(
    'count the changes of an import where its report does, and remember what was proven before',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({
        counts: { customers: 1, subscriptions: 0, plans: 10, retentions: 0 },
        // Such a read is proven, and moves no watermark.
        dateHeader: false,
        faults: [
          { kind: 'refuse', answer: { amount: ['No.'] }, on: 'POST /addons/', to: 4 },
          { kind: 'reset', on: 'POST /addons/', from: 10, to: 12 },
        ],
      })
      const client = await connectTemporal()
      const first = await startServing(world)
      await (await startRun({ client, world, input: { resources: ['plans'], to: ['duckdb'] } })).result()
      const provenAt = sumOf(await scrape(first.url), 'connector_last_proven_timestamp_seconds')
      first.child.kill('SIGTERM')
      expect((await first.ended).code).toBe(0)

      const { url } = await startServing(world)
      const known = sumOf(await scrape(url), 'connector_last_proven_timestamp_seconds', {
        resource: 'plans',
        destination: 'duckdb',
      })
      expect(Math.abs(known - provenAt)).toBeLessThan(2)
      const file = await putFile(world, addonsCsv(30))
      const run = await startImport({ client, world, input: { kind: 'addons', file, canary: 0, ...quick } })
      const { counts } = await run.result()
      expect(counts.rejected).toBeGreaterThan(0)
      expect(counts.parked).toBeGreaterThan(0)
      const places = async () => {
        const samples = await scrape(url)
        const standing = (state: string) => sumOf(samples, 'connector_changes', { state })
        return {
          done: standing('done'),
          rejected: standing('rejected'),
          parked: standing('parked'),
          staged: standing('staged'),
          unknown: standing('unknown') + standing('sending'),
        }
      }
      const { done, rejected, parked, staged, unknown } = counts
      // A count that took long (a busy machine) is not repeated for a hundred times as long.
      await expect.poll(places).toEqual({ done, rejected, parked, staged, unknown })
      const samples = await scrape(url)
      const posts = Object.entries(answers(world)).filter(([key]) => key.startsWith('create addon'))
      for (const [key, count] of posts) {
        const labels = { operation: 'create addon', status: key.replace('create addon ', '') }
        expect(sumOf(samples, 'connector_requests_total', labels)).toBe(count)
      }
    },
  )

  test(
    'are refused with a sentence where their address is taken, and served to nobody by default',
    { tags: ['long'] },
    async () => {
      const world = await createWorld()
      const { url } = await startServing(world)
      const other = await createWorld()
      const env = { CONNECTOR_METRICS_ADDRESS: new URL(url).host }
      const { code, stderr } = await callCommand(other, ['worker'], { env })
      expect(code).toBe(2)
      expect(stderr).toMatch(/error: Metrics can't be served at .*EADDRINUSE.*CONNECTOR_METRICS_ADDRESS/)
      const silent = startCommand(other, ['worker'])
      await silent.says('listening')
      expect(silent.texts.stderr).not.toContain('/metrics')
    },
  )
})

describe('the readiness of a worker', () => {
  const ready = async (url: string) => {
    const response = await fetch(`${url}/readyz`)
    const { checks } = (await response.json()) as { checks: Record<string, { ok: boolean; message: string }> }
    const wrong = Object.entries(checks).flatMap(([name, { ok }]) => (ok ? [] : [name]))
    return { status: response.status, wrong, checks }
  }

  test(
    'ends with the lock or the Temporal server, each by its name; the process stays healthy',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts: { plans: 5 } })
      const { url, child, ended } = await startServing(world, 'up', local)
      await until(async () => (await ready(url)).status === 200)

      const lock = join(world.dataDir, 'worker.lock')
      await rename(lock, `${lock}.away`)
      expect(await ready(url)).toMatchObject({ status: 503, wrong: ['lock'] })
      await rename(`${lock}.away`, lock)
      expect(await ready(url)).toMatchObject({ status: 200, wrong: [] })

      const server = findServer(world.dataDir)
      if (server === undefined) throw new Error('there is no record of the dev server')
      // Stopped, not ended: `up` would end with it.
      process.kill(server.pid, 'SIGSTOP')
      expect((await ready(url)).wrong).toContain('polling')
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      expect((await fetch(`${url}/other`)).status).toBe(404)
      expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405)
      process.kill(server.pid, 'SIGCONT')
      child.kill('SIGTERM')
      await ended
    },
  )

  test.skipIf(!mayMount())('ends where the disk of the data folder is nearly full', async () => {
    const world = await createWorld()
    const disk = await mkdtemp(join(tmpdir(), 'small-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=700', 'tmpfs', disk])
    const { url, child, ended } = await startServing(world, 'worker', { CONNECTOR_DATA_DIR: disk })
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await ended
      execFileSync('umount', [disk])
      await rm(disk, { recursive: true })
    })
    const { wrong, checks } = await ready(url)
    expect(wrong).toContain('disk')
    expect(checks['disk']?.message).toMatch(/^only \d+ MB are free on the disk of/)
    const samples = await scrape(url)
    expect(sumOf(samples, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
    const free = sumOf(samples, 'connector_disk_free_bytes', {})
    expect(free).toBeGreaterThan(1e6)
    expect(free).toBeLessThanOrEqual(64 * 2 ** 20)
  })
})
