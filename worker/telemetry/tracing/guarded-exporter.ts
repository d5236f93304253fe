import { ExportResultCode } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'

/** Every attribute that may leave: ids, numbers and fixed words. */
const allowed = new Set([
  'temporalWorkflowId',
  'run_id',
  'temporalActivityId',
  'error.type',
  'http.response.status_code',
  'billing.attempt',
  'billing.waited_ms',
  'billing.page',
])

export interface GuardedExporter extends SpanExporter {
  /** Reports once that the collector does not take traces, until it does again. */
  noteAway(reason: string): void
}

/**
 * Keeps everything out of the exported spans that may hold text from a row or a person: messages of failures, their
 * stacks, typed reasons. A collector that does not answer is reported once, and again once it was back.
 */
export function toGuardedExporter(options: {
  exporter: SpanExporter
  origin: string
  warn: (problem: string) => void
}): GuardedExporter {
  const { exporter, origin, warn } = options
  let isAway = false
  const noteAway = (reason: string) => {
    if (!isAway) warn(`Traces do not reach ${origin} (${reason}); runs continue without them.`)
    isAway = true
  }
  return {
    noteAway,
    export(spans, onResult) {
      exporter.export(spans.map(withoutText), ({ code, error }) => {
        if (code === ExportResultCode.SUCCESS) isAway = false
        else noteAway(reasonOf(error))
        // The processor would only report it again.
        onResult({ code: ExportResultCode.SUCCESS })
      })
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  }
}

/** `ECONNREFUSED`, the status of an answer, or a message. */
const reasonOf = (error: (Error & { code?: string | number }) | undefined) =>
  String(error?.code ?? error?.message ?? 'not accepted')

/** The span with its allowed attributes and its status, and without events and the status's message. */
function withoutText(span: ReadableSpan): ReadableSpan {
  const attributes = Object.fromEntries(Object.entries(span.attributes).filter(([name]) => allowed.has(name)))
  const status = { code: span.status.code }
  return Object.assign(Object.create(span) as ReadableSpan, { attributes, status, events: [], links: [] })
}
