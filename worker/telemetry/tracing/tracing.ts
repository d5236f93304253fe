import type { WorkflowClientInterceptor } from '@temporalio/client'
import type { Settings } from '../../settings/settings.ts'
import type { Tracing } from './open-tracing.ts'

type Environment = Settings['environment']

/** A variable without text counts as unset, as in all settings. */
const endpointNames = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const
const protocolNames = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const

/** Where traces go, by OpenTelemetry's own variables; undefined if nothing is traced. */
export interface TraceTarget {
  /** Without a path, which may hold a secret. */
  origin: string
}

/** The target of traces, or why there is none although a variable asks for it. */
export function findTraceTarget(environment: Environment): TraceTarget | { problem: string } | undefined {
  const [endpointName] = endpointNames.filter((name) => environment[name] !== undefined)
  const exporters = environment['OTEL_TRACES_EXPORTER']?.split(',').map((name) => name.trim())
  if (endpointName === undefined || environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true')
    return undefined
  if (exporters !== undefined && !exporters.includes('otlp')) return undefined
  const url = URL.parse(environment[endpointName] ?? '')
  if (url === null || !/^https?:$/.test(url.protocol))
    return {
      problem: `Nothing is traced: ${endpointName} is not an http or https address. Set it to one like http://127.0.0.1:4318.`,
    }
  const [protocolName] = protocolNames.filter((name) => environment[name] !== undefined)
  if (protocolName !== undefined && environment[protocolName] === 'grpc')
    return {
      problem: `Nothing is traced: ${protocolName} is grpc. Set it to http/protobuf, and ${endpointName} to the collector's port for http, usually 4318.`,
    }
  return { origin: url.origin }
}

type Traced = Pick<Settings, 'environment' | 'taskQueue' | 'billing'>

/** Problems of commands, which have no log. */
const untold: string[] = []
const tellLater = (problem: string) => void untold.push(problem)

/** The tracing of each workspace in this process, by what it was opened with. */
const opened = new Map<string, Promise<Tracing>>()

/**
 * Opens tracing once for each workspace of this process; undefined if nothing is traced. Loads OpenTelemetry only then.
 *
 * @param warn - told why nothing is traced, and when traces no longer arrive; by default, `closeTracing` tells
 */
export async function openTracing(
  settings: Traced,
  warn: (problem: string) => void = tellLater,
): Promise<Tracing | undefined> {
  const target = findTraceTarget(settings.environment)
  if (target === undefined) return undefined
  if (!('problem' in target)) return await loadTracing({ settings, target, warn })
  warn(target.problem)
  return undefined
}

async function loadTracing(options: {
  settings: Traced
  target: TraceTarget
  warn: (problem: string) => void
}): Promise<Tracing> {
  const { settings, target, warn } = options
  const { workspace, testMode } = settings.billing
  const isOtel = ([name]: [string, string]) => name.startsWith('OTEL_')
  const variables = Object.fromEntries(Object.entries(settings.environment).filter(isOtel))
  const key = JSON.stringify([settings.taskQueue, variables])
  const tracing =
    opened.get(key) ??
    import('./open-tracing.ts').then(({ createTracing }) =>
      createTracing({ variables, origin: target.origin, workspace, testMode, warn }),
    )
  opened.set(key, tracing)
  return await tracing
}

/** Traces what commands send to runs, from the first time that they do; not their queries. */
export function tracedClient(settings: Traced): WorkflowClientInterceptor[] {
  const target = findTraceTarget(settings.environment)
  if (target === undefined || 'problem' in target) return []
  const client = async () => (await loadTracing({ settings, target, warn: tellLater })).client
  return [
    {
      startWithDetails: async (input, next) => (await client()).startWithDetails(input, next),
      signal: async (input, next) => (await client()).signal(input, next),
      startUpdate: async (input, next) => (await client()).startUpdate(input, next),
      startUpdateWithStart: async (input, next) => (await client()).startUpdateWithStart(input, next),
    },
  ]
}

/** How long the end of a process waits for the collector, in ms. */
const flushWithinMs = 2_000

/**
 * Sends the spans that are left, when the process ends. Resolves to whether the collector took them, and to the problems
 * that nobody was told.
 */
export async function closeTracing(): Promise<{ isSent: boolean; problems: string[] }> {
  const closing = [...opened.values()].map(async (tracing) =>
    (await tracing).close({ withinMs: flushWithinMs }),
  )
  opened.clear()
  const sent = await Promise.all(closing)
  return { isSent: !sent.includes(false), problems: untold.splice(0) }
}
