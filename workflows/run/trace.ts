import { defaultPayloadConverter } from '@temporalio/common'
import {
  ApplicationFailure,
  ContinueAsNew,
  TemporalFailure,
  type Headers,
  proxySinks,
  workflowInfo,
  type WorkflowInterceptorsFactory,
} from '@temporalio/workflow'

declare global {
  /** Set at the start of the bundle (worker/workflow-bundle.ts) if runs are traced: the share of those to sample. */
  var connectorTraces: number | undefined
}

/** The header that the interceptors of Temporal's SDK read and write in clients and activities. */
const headerName = '_tracer-data'

interface SpanPlace {
  traceId: string
  spanId: string
  sampled: boolean
}

/**
 * Traces a run. Unlike the SDK's interceptor for workflows, it neither waits nor draws random numbers, so that traced
 * and untraced runs have the same commands in the same order: each replays with and without it. That is why the ids
 * are those of the run.
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  const share = globalThis.connectorTraces
  if (share === undefined) return {}
  /** For the steps and children of the run. */
  let below: Headers = {}
  /** For its continuation, which is a sibling. */
  let beside: Headers = {}
  return {
    inbound: [
      {
        execute(input, next) {
          const parent = readHeader(input.headers)
          const own = spanOf(workflowInfo().runId, { parent, share })
          below = toHeaders(own)
          beside = toHeaders(parent ?? own)
          const ended = next(input)
          ended.then(
            () => report({ own, parent }),
            (error: unknown) => report({ own, parent, error }),
          )
          return ended
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) => next({ ...input, headers: { ...input.headers, ...below } }),
        startChildWorkflowExecution: (input, next) =>
          next({ ...input, headers: { ...input.headers, ...below } }),
        continueAsNew: (input, next) => next({ ...input, headers: { ...input.headers, ...beside } }),
      },
    ],
  }
}

/** Undefined for a run that a schedule or the Temporal UI started, and for a header that is not a trace's. */
function readHeader(headers: Headers): SpanPlace | undefined {
  const payload = headers[headerName]
  if (payload === undefined) return undefined
  try {
    const { traceparent } = defaultPayloadConverter.fromPayload<{ traceparent: string }>(payload)
    const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$/.exec(traceparent) ?? []
    return traceId === undefined || spanId === undefined
      ? undefined
      : { traceId, spanId, sampled: flags === '1' }
  } catch {
    return undefined
  }
}

function toHeaders({ traceId, spanId, sampled }: SpanPlace): Headers {
  const traceparent = `00-${traceId}-${spanId}-0${sampled ? '1' : '0'}`
  return { [headerName]: defaultPayloadConverter.toPayload({ traceparent }) }
}

/** The second half of a run id is random, also where the first is a time. */
function spanOf(runId: string, of: { parent: SpanPlace | undefined; share: number }): SpanPlace {
  const { parent, share } = of
  const traceId = runId.replaceAll('-', '')
  const spanId = traceId.slice(16)
  if (parent !== undefined) return { ...parent, spanId }
  return { traceId, spanId, sampled: Number.parseInt(traceId.slice(24), 16) / 2 ** 32 < share }
}

// Of `makeWorkflowExporter` of the SDK, which takes spans as its own interceptor sends them. Not by its types: the values
// of OpenTelemetry's enums would bring its API into the bundle.
const { exporter } = proxySinks<{ exporter: { export(spans: readonly object[]): void } }>()

/** Hands over the span of the run, unless it ends with a bug, which fails the task and not the run. */
function report(run: { own: SpanPlace; parent: SpanPlace | undefined; error?: unknown }): void {
  const { own, parent, error } = run
  const isOk = error === undefined || error instanceof ContinueAsNew
  if (!isOk && !(error instanceof TemporalFailure)) return
  const { workflowType, workflowId, runId, runStartTime } = workflowInfo()
  const start = runStartTime.getTime()
  const end = Date.now()
  exporter.export([
    {
      name: `RunWorkflow:${workflowType}`,
      // Internal; below, OK or an error.
      kind: 0,
      spanContext: { traceId: own.traceId, spanId: own.spanId, traceFlags: own.sampled ? 1 : 0 },
      ...(parent && { parentSpanId: parent.spanId }),
      startTime: toHrTime(start),
      endTime: toHrTime(end),
      duration: toHrTime(end - start),
      status: { code: isOk ? 1 : 2 },
      attributes: {
        temporalWorkflowId: workflowId,
        run_id: runId,
        ...(!isOk && { 'error.type': typeOf(error) }),
      },
      links: [],
      events: [],
      ended: true,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
      instrumentationLibrary: { name: 'billing-connector' },
    },
  ])
}

const typeOf = (error: Error) => (error instanceof ApplicationFailure ? error.type : undefined) ?? error.name

const toHrTime = (ms: number): [number, number] => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)]
