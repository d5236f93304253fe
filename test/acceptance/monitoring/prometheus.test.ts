import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { freePorts } from '../../../worker/free-ports.ts'
import { connectTemporal, createWorld, startCommand, startRun, until } from '../../system/export/world.ts'
import { promtool, startPrometheus } from './prometheus.ts'

interface Case {
  name: string
  /** Default: a minute. */
  interval?: string
  series: Record<string, string>
  quiet?: string[]
  fires?: { at: string; alert: string; labels?: Record<string, string>; summary: string }[]
}

interface Rules {
  groups: { rules: { name: string; health: string; state: string }[] }[]
}

const here = fileURLToPath(new URL('.', import.meta.url))
const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))
const { groups } = parse(readFileSync(`${docs}alerts.yml`, 'utf8')) as {
  groups: { rules: { alert: string; labels: object; annotations: { description: string } }[] }[]
}
const ruleOf = new Map(groups.flatMap((group) => group.rules.map((rule) => [rule.alert, rule])))
const alerts = [...ruleOf.keys()]
const cases = parse(readFileSync(`${here}alert-cases.yml`, 'utf8')) as Case[]
const dashboard = JSON.parse(readFileSync(`${docs}deployment/grafana/dashboards/connector.json`, 'utf8')) as {
  panels: { title: string; targets: { expr: string }[] }[]
}
/** An installation in which nothing is wrong. A number is a level; `rate` is per second. */
const healthy: Record<string, number | { rate: number }> = {
  'up{job="connector", instance="a"}': 1,
  'up{job="temporal", instance="temporal:9091"}': 1,
  'temporal_num_pollers{instance="a", poller_type="workflow_task"}': 2,
  'connector_state_up{instance="a"}': 1,
  // As fresh as the clock of these cases.
  'connector_last_proven_timestamp_seconds{resource="orders", destination="csv"}': { rate: 1 },
  'connector_exports_total{resource="orders", destination="csv", verdict="proven"}': { rate: 0.001 },
  'connector_changes{state="done"}': 1000,
  'connector_changes{state="parked"}': 0,
  'connector_changes{state="unknown"}': 0,
  'connector_requests_total{operation="list orders", status="200"}': { rate: 10 },
  connector_refused: 0,
  'connector_rate_wait_seconds_sum{operation="list orders"}': { rate: 1 },
  'connector_rate_wait_seconds_count{operation="list orders"}': { rate: 10 },
  'temporal_workflow_task_execution_failed{workflow_type="exportData"}': 1,
  'temporal_activity_execution_failed{activity_type="exportSegment"}': 1,
  'connector_disk_free_bytes{job="connector"}': 50e9,
  'process_resident_memory_bytes{job="connector"}': 350e6,
  'persistence_requests{operation="GetTasks"}': { rate: 10 },
  'persistence_error_with_type{operation="GetTasks", error_type="serviceerror_NotFound"}': { rate: 5 },
}

const metricOf = (series: string) => series.split('{')[0]

/** A case in a healthy installation as promtool takes it: at each time, only the alerts fire that the case names. */
function toPromtool({ name, interval = '1m', series, quiet = [], fires = [] }: Case) {
  const own = new Set(Object.keys(series).map(metricOf))
  const [seconds, count] = interval === '1h' ? [3600, 30] : [60, 200]
  const others = Object.entries(healthy)
    .filter(([series]) => !own.has(metricOf(series)))
    .map(([series, value]): [string, string] => [
      series,
      typeof value === 'number' ? `${value}x${count}` : `0+${value.rate * seconds}x${count}`,
    ])
  const times = new Set([...quiet, ...fires.map(({ at }) => at)])
  return {
    name,
    interval,
    input_series: [...Object.entries(series), ...others].map(([series, values]) => ({ series, values })),
    alert_rule_test: fires.map(({ at, alert, labels = {}, summary }) => {
      const { labels: own, annotations } = ruleOf.get(alert)!
      const expected = { exp_labels: { ...own, ...labels }, exp_annotations: { ...annotations, summary } }
      return { eval_time: at, alertname: alert, exp_alerts: [expected] }
    }),
    promql_expr_test: [...times].map((time) => ({
      expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
      eval_time: time,
      exp_samples: fires
        .filter(({ at }) => at === time)
        .map(({ alert }) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    })),
  }
}

test('each alert fires in its own case and in no other, as Prometheus itself reads the rules', async () => {
  const fired = cases.flatMap(({ fires = [] }) => fires.map(({ alert }) => alert))
  expect(new Set(fired)).toEqual(new Set(alerts))
  const folder = await mkdtemp(join(tmpdir(), 'alerts-'))
  const rules = { evaluation_interval: '1m', rule_files: [`${docs}alerts.yml`] }
  await writeFile(join(folder, 'cases.yml'), JSON.stringify({ ...rules, tests: cases.map(toPromtool) }))
  expect(await promtool(['test', 'rules', 'cases.yml'], { cwd: folder })).toContain('SUCCESS')
  await rm(folder, { recursive: true })
})

describe('Prometheus with the configuration of the docs', () => {
  test('finds every metric of the alerts in a healthy worker, and none of them fires', async () => {
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
    await until(async () => (await prometheus.query('up{job="connector"} == 1')).length === 1)

    const run = await startRun({ client: await connectTemporal(), world })
    expect((await run.result()).verdict).toBe('proven')
    await until(async () => {
      const grown = 'sum(increase(connector_exports_total{verdict="proven"}[1m])) > 0'
      return (await prometheus.query(grown)).length === 1
    })
    expect(await prometheus.query('sum(temporal_num_pollers) > 0')).toHaveLength(1)
    expect(await prometheus.query('process_resident_memory_bytes{job="connector"}')).toHaveLength(1)
    // Nothing was proven before the export: that alert has to be quiet again.
    let rules: Rules['groups'][0]['rules'] = []
    await until(async () => {
      const { groups: seen } = await prometheus.ask<Rules>('rules')
      rules = seen.flatMap((group) => group.rules)
      return rules.every(({ health, state }) => health === 'ok' && state === 'inactive')
    })
    expect(rules.map(({ name }) => name)).toEqual(alerts)

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
    await until(async () => (await prometheus.query('max(connector_refused) == 0')).length === 1)

    // After two exports and a failed step, every panel has data.
    const empty = async () => {
      const asked = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
      const found = await Promise.all(asked.map((expr) => prometheus.query(expr)))
      return asked.filter((_, index) => found[index]?.every(({ value: [, text] }) => text === 'NaN'))
    }
    await expect.poll(empty).toEqual([])
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
