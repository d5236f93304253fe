// Loads OpenTelemetry: import this file only where something is traced.
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { envDetectorSync, Resource } from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import {
  makeWorkflowExporter,
  OpenTelemetryActivityInboundInterceptor,
  OpenTelemetryWorkflowClientInterceptor,
} from '@temporalio/interceptors-opentelemetry'
import { ApplicationFailure } from '@temporalio/common'
import type { ActivityInboundCallsInterceptor, WorkerOptions } from '@temporalio/worker'
import { setTimeout as wait } from 'node:timers/promises'
import type { Try } from '../../../core/billing/calls.ts'
import { workerName } from '../../../core/state/postgres/membership.ts'
import { version } from '../../version.ts'
import { toGuardedExporter } from './guarded-exporter.ts'

/** What a process needs to trace one workspace. */
export interface Tracing {
  client: OpenTelemetryWorkflowClientInterceptor
  /** For the SDK's worker. */
  worker: Required<Pick<WorkerOptions, 'interceptors' | 'sinks'>>
  /** The share of the runs without a parent to sample. */
  share: number
  /** Traces a request of the current step. */
  request(tried: Try): void
  /** Sends what is left, and nothing afterwards. False if the collector did not take it in time. */
  close(options: { withinMs: number }): Promise<boolean>
}

/** Of the exporter's connections, in ms: its own timeout begins when they are established. */
const connectWithinMs = 10_000

export function createTracing(options: {
  /** OpenTelemetry's own variables. */
  variables: Readonly<Record<string, string>>
  origin: string
  workspace: string
  testMode: boolean
  /** Told when traces no longer arrive. */
  warn: (problem: string) => void
}): Tracing {
  const { variables, origin, workspace, testMode, warn } = options
  // No baggage: what is in the headers of a run is not encrypted. A second call changes nothing.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  const { provider, processor, exporter } = withEnvironment(variables, () => {
    const guarded = toGuardedExporter({
      exporter: new OTLPTraceExporter({ httpAgentOptions: { keepAlive: true, timeout: connectWithinMs } }),
      origin,
      warn,
    })
    const ownResource = new Resource({
      'service.name': 'billing-connector',
      'service.version': version,
      'service.instance.id': workerName(),
      'billing.workspace': workspace,
      'billing.mode': testMode ? 'test' : 'live',
    })
    const spans = new BatchSpanProcessor(guarded)
    const resource = ownResource.merge(envDetectorSync.detect())
    const spanProcessors = [spans]
    return {
      exporter: guarded,
      processor: spans,
      provider: new BasicTracerProvider({ resource, spanProcessors }),
    }
  })
  const tracer = provider.getTracer('billing-connector', version)
  return {
    client: new OpenTelemetryWorkflowClientInterceptor({ tracer }),
    worker: {
      interceptors: {
        activity: [
          (step) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(step, { tracer }) }),
          () => ({ inbound: typedFailures }),
        ],
      },
      sinks: { exporter: makeWorkflowExporter(processor, provider.resource) },
    },
    share: sampledShare(variables),
    request(tried) {
      // Health checks are no part of a run.
      if (trace.getActiveSpan() === undefined) return
      const { operation, status, ms, attempt, waitedMs, page } = tried
      const now = Date.now()
      const span = tracer.startSpan(operation, { kind: SpanKind.CLIENT, startTime: now - ms })
      span.setAttributes({
        'billing.attempt': attempt,
        'billing.waited_ms': Math.round(waitedMs),
        ...(page !== undefined && { 'billing.page': page }),
        ...(status !== undefined && { 'http.response.status_code': status }),
      })
      if (status === undefined || status >= 400) {
        span.setStatus({ code: SpanStatusCode.ERROR })
        span.setAttribute('error.type', status === undefined ? 'no answer' : String(status))
      }
      span.end(now)
    },
    async close({ withinMs }) {
      const inTime = new AbortController()
      const late = wait(withinMs, false, { signal: inTime.signal }).catch(() => false)
      const isSent = await Promise.race([provider.shutdown().then(() => true), late])
      inTime.abort()
      if (!isSent) exporter.noteAway(`no answer in ${withinMs / 1000} s`)
      return isSent
    },
  }
}

/** Adds the type of a failed step; the SDK's interceptor knows only "ApplicationFailure". */
const typedFailures: ActivityInboundCallsInterceptor = {
  async execute(input, next) {
    try {
      return await next(input)
    } catch (error) {
      const type = error instanceof ApplicationFailure ? error.type : undefined
      trace.getActiveSpan()?.setAttribute('error.type', type ?? (error as Error).name)
      throw error
    }
  },
}

/** OpenTelemetry reads its variables from the process alone, and only when something is created. */
function withEnvironment<T>(variables: Readonly<Record<string, string>>, create: () => T): T {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
  Object.assign(process.env, variables)
  try {
    return create()
  } finally {
    for (const [name, text] of before)
      if (text === undefined) delete process.env[name]
      else process.env[name] = text
  }
}

/** What OTEL_TRACES_SAMPLER says of a run that a schedule or the Temporal UI starts: it is sampled in the workflow. */
function sampledShare(variables: Readonly<Record<string, string>>): number {
  const sampler = variables['OTEL_TRACES_SAMPLER'] ?? 'parentbased_always_on'
  if (sampler.endsWith('always_off')) return 0
  const share = Number(variables['OTEL_TRACES_SAMPLER_ARG'] ?? 1)
  return sampler.endsWith('traceidratio') && share >= 0 && share <= 1 ? share : 1
}
