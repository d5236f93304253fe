import { DefaultLogger } from '@temporalio/worker'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { createTelemetry } from '../../worker/telemetry/metrics.ts'
import { parseMetrics } from '../system/worker/scrape.ts'

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; description: string }
}

const docs = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
const { groups } = parse(docs('alerts.yml')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)

/** Every metric of this process, each with its labels: all are touched once. */
async function ownMetrics(): Promise<Map<string, Set<string>>> {
  const telemetry = createTelemetry({
    ofProcess: true,
    logger: new DefaultLogger('ERROR'),
    info: { version: '1' },
    countChanges: () => Promise.resolve([]),
    freeBytes: () => Promise.resolve(1),
    proven: [],
  })
  const resource = 'plans'
  telemetry.onRequest({ operation: 'list plans', status: 200, ms: 1, attempt: 1, waitedMs: 1 })
  telemetry.observer.onPage({ resource, pages: 1, records: 1 })
  const run = { type: 'published', run: 'r', resource, destination: 'csv' } as const
  telemetry.observer.onEvent({
    ...run,
    verdict: 'proven',
    records: 1,
    ms: 1,
    readAt: Date.now(),
    whole: true,
  })
  const labels = new Map<string, Set<string>>()
  for (const sample of parseMetrics(await telemetry.text()))
    labels.set(sample.name, new Set([...(labels.get(sample.name) ?? []), ...Object.keys(sample.labels)]))
  return labels
}

/** What the SDK's native part can tell stands in its binary. */
function sdkNames(): string {
  const bridge = createRequire(import.meta.url).resolve('@temporalio/core-bridge/package.json')
  const cpu = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const system = process.platform === 'darwin' ? 'apple-darwin' : 'unknown-linux-gnu'
  return readFileSync(join(bridge, '../releases', `${cpu}-${system}`, 'index.node'), 'latin1')
}

interface Dashboard {
  uid: string
  panels: { title: string; description: string; targets: { expr: string }[] }[]
}

const dashboard = JSON.parse(docs('deployment/grafana/dashboards/connector.json')) as Dashboard

/** All that asks Prometheus for something. */
const queries = [
  ...rules.map(({ alert, expr }) => ({ name: alert, expr })),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ name: title, expr }))),
]

/** Metrics of the Temporal server, as it serves them; test/acceptance/monitoring asks a real one. */
const serverMetrics = [
  'schedule_missed_catchup_window',
  'persistence_error_with_type',
  'persistence_requests',
]

const metricNames = (expr: string) =>
  expr
    .match(/\b(connector|temporal|process|nodejs|schedule|persistence)_\w+/g)
    ?.filter((name) => name !== 'up') ?? []

test('alerts and the dashboard name only metrics and labels that exist', async () => {
  const own = await ownMetrics()
  const sdk = sdkNames()
  for (const { name: alert, expr } of queries) {
    const names = metricNames(expr)
    expect(names.length > 0 || expr.includes('up{'), `${alert} looks at nothing`).toBe(true)
    for (const name of names) {
      const known = name.startsWith('temporal_')
        ? sdk.includes(name.slice('temporal_'.length))
        : own.has(name) || serverMetrics.includes(name)
      expect(known, `${alert} names ${name}`).toBe(true)
    }
    for (const [, name = '', inner = ''] of expr.matchAll(/\b(connector_\w+)\{([^}]*)\}/g))
      for (const [, label = ''] of inner.matchAll(/(\w+)=~?"/g))
        expect(own.get(name), `${alert} asks ${name} for ${label}`).toContain(label)
    for (const [, labels = '', inner = ''] of expr.matchAll(/\bby \(([^)]*)\) \(?(?:\w+\()?(\w+)/g))
      for (const label of labels.split(', '))
        if (own.has(inner)) expect(own.get(inner), `${alert} groups ${inner} by ${label}`).toContain(label)
  }
})

test('each alert says what is wrong and what to do, and every metric of ours is on the page', async () => {
  const page = docs('monitoring.md')
  expect(rules.length).toBeGreaterThan(10)
  for (const { labels, annotations } of rules) {
    expect(['critical', 'warning', 'info']).toContain(labels.severity)
    expect(annotations.summary).toMatch(/\.$/)
    expect(annotations.description).toMatch(/\.$/)
  }
  const own = [...(await ownMetrics()).keys()].filter((name) => name.startsWith('connector_'))
  for (const name of own) {
    const base = name.replace(/^connector_/, '').replace(/_(sum|count|bucket)$/, '')
    expect(page).toContain(`| \`${base}\` `)
  }
})

test('the dashboard shows the metrics that an administrator is asked about', () => {
  const shown = dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => metricNames(expr)))
  const base = (name: string) => name.replace(/_(sum|count|bucket)$/, '')
  expect(new Set(shown.map(base))).toEqual(
    new Set([
      ...[
        'last_proven_timestamp_seconds',
        'exports_total',
        'requests_total',
        'request_seconds',
        'rate_wait_seconds',
        'changes',
        'records_total',
        'refused',
        'publish_seconds',
        'disk_free_bytes',
      ].map((name) => `connector_${name}`),
      'process_resident_memory_bytes',
      'temporal_activity_execution_failed',
      'temporal_workflow_task_execution_failed',
    ]),
  )
  for (const { title, description } of dashboard.panels) expect(description, title).toMatch(/\.$/)
})
