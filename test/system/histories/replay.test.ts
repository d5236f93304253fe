import { DefaultLogger, Worker } from '@temporalio/worker'
import { createRequire } from 'node:module'
import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { installRuntime } from '../../../worker/telemetry/log.ts'
import { loadWorkflowBundle } from '../../../worker/workflow-bundle.ts'
import { scenarios } from './scenarios.ts'

interface Event {
  eventId: string
  eventType: string
  workflowExecutionStartedEventAttributes?: { workflowId: string; workflowType: { name: string } }
  activityTaskScheduledEventAttributes?: { activityType: { name: string } }
}
interface History {
  events: Event[]
}

const folder = new URL('recorded/', import.meta.url)
const { version } = createRequire(import.meta.url)('../../../package.json') as { version: string }
/** Of each release whose runs may still be open when this version is installed: `0.1.0/export-data`. */
const names = readdirSync(folder).flatMap((release) =>
  readdirSync(new URL(`${release}/`, folder)).map((file) => `${release}/${file.replace(/\.json$/, '')}`),
)
const current = names.filter((name) => name.startsWith(`${version}/`))
const textOf = (name: string) => readFileSync(new URL(`${name}.json`, folder), 'utf8')
const historyOf = (name: string) => JSON.parse(textOf(name)) as History
const startOf = ({ events }: History) => {
  const attributes = events[0]?.workflowExecutionStartedEventAttributes
  if (attributes === undefined) throw new Error('a history begins with the start of its run')
  return attributes
}
const typeOf = (history: History) => startOf(history).workflowType.name

let workflowBundle: Awaited<ReturnType<typeof loadWorkflowBundle>>
beforeAll(async () => {
  // What does not replay is told by the test; the SDK's own log of it is pages long.
  await installRuntime({ logger: new DefaultLogger('ERROR'), level: 'error', metrics: false })
  workflowBundle = await loadWorkflowBundle({ encodesFailures: false })
})

/** Every text of a history, its payloads decoded. */
function textsOf(value: unknown): { texts: string[]; payloads: number } {
  if (typeof value === 'string') return { texts: [value], payloads: 0 }
  if (typeof value !== 'object' || value === null) return { texts: [], payloads: 0 }
  const found = Object.entries(value).map(([key, one]: [string, unknown]) =>
    key === 'data' && 'metadata' in value && typeof one === 'string'
      ? { texts: [Buffer.from(one, 'base64').toString()], payloads: 1 }
      : textsOf(one),
  )
  return {
    texts: found.flatMap(({ texts }) => texts),
    payloads: found.reduce((sum, { payloads }) => sum + payloads, 0),
  }
}

/** Under the id it was recorded with: children are named after it. */
const replay = (history: History) =>
  Worker.runReplayHistory({ workflowBundle }, history, startOf(history).workflowId)

describe('the recorded histories', () => {
  test('of this version are those of every scenario, and of every workflow there is', () => {
    const recordedNames = current.map((name) => name.slice(version.length + 1))
    expect(recordedNames.toSorted()).toEqual(Object.keys(scenarios).toSorted())
    const door = readFileSync(new URL('../../../workflows/index.ts', import.meta.url), 'utf8')
    const types = [...door.matchAll(/^export \{ (.+) \}/gm)].flatMap(([, names]) => names?.split(', ') ?? [])
    expect(types.length).toBeGreaterThan(5)
    const recorded = new Set(current.map((name) => typeOf(historyOf(name))))
    expect(types.filter((type) => !recorded.has(type))).toEqual([])
  })

  test.each(names)('replay on the workflow code as it is: %s', async (name) => {
    await replay(historyOf(name))
  })

  test.each(names)('name neither a machine nor its paths: %s', (name) => {
    const { texts, payloads } = textsOf(historyOf(name))
    expect(payloads).toBeGreaterThan(0)
    const telling =
      /127\.0\.0\.1|\/tmp\/|\/dev\/shm|\/home\/|\/root\/|\/work\/|@(?!machine)[a-z0-9-]+("|$)|sandbox-token/i
    expect(texts.filter((text) => telling.test(text))).toEqual([])
  })

  test.each(names)('tell when a command is another than the recorded one: %s', async (name) => {
    const history = historyOf(name)
    const last = history.events.findLast(
      ({ eventType }) => eventType === 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED',
    )
    const attributes = last?.activityTaskScheduledEventAttributes
    if (attributes === undefined) throw new Error(`${name} has no activity`)
    attributes.activityType.name = 'anotherActivity'
    await expect(replay(history)).rejects.toThrow(/nondeterminism/i)
  })
})

test('a changed order of commands is noticed', async () => {
  const history = historyOf(`${version}/export-data`)
  const isRead = ({ activityTaskScheduledEventAttributes: scheduled }: Event) =>
    scheduled?.activityType.name === 'planRead'
  const [first, second] = history.events.filter(isRead)
  if (first === undefined || second === undefined) throw new Error('it read two lists')
  // The two lists as if they had been read the other way round.
  const was = { ...first }
  Object.assign(first, second, { eventId: was.eventId })
  Object.assign(second, was, { eventId: second.eventId })
  await expect(replay(history)).rejects.toThrow(/nondeterminism/i)
})
