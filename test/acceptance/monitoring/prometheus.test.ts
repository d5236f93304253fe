import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { freePorts } from '../../../scripts/dev-server/free-ports.ts'
import { connectTemporal, createWorld, startCommand, startRun, until } from '../../system/export/world.ts'
import { promtool, startPrometheus } from './prometheus.ts'

interface Case {
  alert_rule_test: { alertname: string; exp_alerts: unknown[] }[]
}

interface Rules {
  groups: { rules: { name: string; health: string; state: string }[] }[]
}

const here = fileURLToPath(new URL('.', import.meta.url))
const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))
const { groups } = parse(readFileSync(`${docs}alerts.yml`, 'utf8')) as {
  groups: { rules: { alert: string }[] }[]
}
const dashboard = JSON.parse(
  readFileSync(`${docs}deployment/grafana/dashboards/billing-connector.json`, 'utf8'),
) as { panels: { title: string; targets: { expr: string }[] }[] }
const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert))

describe('the alert rules', () => {
  test('fire when they should and not before, as Prometheus itself reads them', async () => {
    expect(await promtool(['test', 'rules', 'alerts.promtool.yml'], { cwd: here })).toContain('SUCCESS')
  })

  test('are each tried where they fire and where they do not', () => {
    const { tests } = parse(readFileSync(`${here}alerts.promtool.yml`, 'utf8')) as { tests: Case[] }
    const tried = tests.flatMap((one) => one.alert_rule_test)
    for (const alert of alerts) {
      const fires = tried
        .filter(({ alertname }) => alertname === alert)
        .map((one) => one.exp_alerts.length > 0)
      expect([alert, new Set(fires)]).toEqual([alert, new Set([true, false])])
    }
  })
})

describe('Prometheus with the configuration of the docs', () => {
  test('finds what the alerts ask for in a worker that works, and has nothing to say of it', async () => {
    const world = await createWorld({ counts: { customers: 30, plans: 5, subscriptions: 5, retentions: 5 } })
    const worker = startCommand(world, ['worker'], { env: { CONNECTOR_METRICS_ADDRESS: '127.0.0.1:0' } })
    await worker.says('/metrics')
    const [, target = ''] = /http:\/\/([^\s"]+)\/metrics/.exec(worker.texts.stderr) ?? []
    const config = readFileSync(`${docs}deployment/prometheus.yml`, 'utf8')
      .replace('scrape_interval: 15s', 'scrape_interval: 1s\n  evaluation_interval: 1s')
      .replace('worker:9464', target)
      // There is no Temporal server of its own here; another test asks one for its metrics.
      .replace('temporal:9091', target)
      .replace('/etc/prometheus/', docs)
    const prometheus = await startPrometheus({ config })
    await until(async () => (await prometheus.query('up{job="billing-connector"} == 1')).length === 1)

    const run = await startRun({ client: await connectTemporal(), world })
    expect((await run.result()).verdict).toBe('proven')
    await until(async () => {
      const grown = 'sum(increase(billing_connector_exports_total{verdict="proven"}[1m])) > 0'
      return (await prometheus.query(grown)).length === 1
    })
    expect(await prometheus.query('sum(temporal_num_pollers) > 0')).toHaveLength(1)
    expect(await prometheus.query('process_resident_memory_bytes{job="billing-connector"}')).toHaveLength(1)
    // Nothing was proven before the export: that alert has to be quiet again.
    let rules: Rules['groups'][0]['rules'] = []
    await until(async () => {
      const { groups: seen } = await prometheus.ask<Rules>('rules')
      rules = seen.flatMap((group) => group.rules)
      return rules.every(({ health, state }) => health === 'ok' && state === 'inactive')
    })
    expect(rules.map(({ name }) => name)).toEqual(alerts)

    for (const { title, targets } of dashboard.panels)
      for (const { expr } of targets) {
        const { status, error } = await prometheus.check(expr)
        expect({ title, status, error }).toEqual({ title, status: 'success', error: undefined })
      }

    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 401 }] })
    const refused = await startRun({
      client: await connectTemporal(),
      world,
      name: `${world.workspace}-refused`,
    })
    await expect(refused.result()).rejects.toMatchObject({
      cause: { message: expect.stringContaining('401') },
    })
    await until(
      async () => (await prometheus.query('ALERTS{alertname="BillingConnectorTokenRefused"}')).length === 1,
    )

    world.sandbox.control.setFaults({ faults: [] })
    const again = await startRun({ client: await connectTemporal(), world, name: `${world.workspace}-again` })
    await again.result()
    await until(async () => (await prometheus.query('max(billing_connector_refused) == 0')).length === 1)
  })
})

test('a real Temporal server serves the metrics that its alerts ask for', async () => {
  const [port = 0, ui = 0, metrics = 0] = await freePorts(3)
  const folder = await mkdtemp(join(tmpdir(), 'server-metrics-'))
  const where = [
    '--ip',
    '127.0.0.1',
    '--port',
    `${port}`,
    '--ui-port',
    `${ui}`,
    '--metrics-port',
    `${metrics}`,
  ]
  const words = ['server', 'start-dev', '--headless', '--db-filename', join(folder, 'temporal.db'), ...where]
  const server = spawn(inject('temporalBinary'), words, { stdio: 'ignore' })
  onTestFinished(() => void server.kill('SIGKILL'))
  const read = async () =>
    await fetch(`http://127.0.0.1:${metrics}/metrics`).then(
      (response) => response.text(),
      () => '',
    )
  await until(async () => (await read()).includes('persistence_error_with_type'))
  const text = await read()
  // The counter of missed slots, with the label namespace, appears with the first.
  expect(text).toMatch(/^persistence_error_with_type\{error_type="serviceerror_NotFound"/m)
  expect(text).toMatch(/^persistence_requests\{/m)
})
