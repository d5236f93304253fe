import { ExportResultCode } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import { describe, expect, it } from 'vitest'
import { toGuardedExporter } from '../../worker/telemetry/tracing/guarded-exporter.ts'
import { findTraceTarget } from '../../worker/telemetry/tracing/tracing.ts'

const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:4318'

describe('traces', () => {
  it('have a target only if an endpoint is set and nothing switches them off', () => {
    const target = { origin: 'http://127.0.0.1:4318' }
    expect(findTraceTarget({})).toBeUndefined()
    expect(findTraceTarget({ OTEL_SERVICE_NAME: 'x' })).toBeUndefined()
    expect(findTraceTarget({ OTEL_EXPORTER_OTLP_ENDPOINT })).toEqual(target)
    const OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = 'https://user:secret@traces.example/v1/traces?key=secret'
    expect(findTraceTarget({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT })).toEqual({
      origin: 'https://traces.example',
    })
    for (const [name, text, isTraced] of [
      ['OTEL_SDK_DISABLED', 'true', false],
      ['OTEL_SDK_DISABLED', 'TRUE', false],
      ['OTEL_SDK_DISABLED', 'false', true],
      ['OTEL_TRACES_EXPORTER', 'none', false],
      ['OTEL_TRACES_EXPORTER', 'console', false],
      ['OTEL_TRACES_EXPORTER', 'console, otlp', true],
      ['OTEL_EXPORTER_OTLP_PROTOCOL', 'http/protobuf', true],
    ] as const)
      expect(findTraceTarget({ OTEL_EXPORTER_OTLP_ENDPOINT, [name]: text }), `${name}=${text}`).toEqual(
        isTraced ? target : undefined,
      )
  })

  it('say what to set where a variable asks for them in vain', () => {
    expect(findTraceTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' })).toEqual({
      problem:
        'Nothing is traced: OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address. Set it to one like http://127.0.0.1:4318.',
    })
    expect(
      findTraceTarget({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' }),
    ).toEqual({
      problem:
        "Nothing is traced: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is grpc. Set it to http/protobuf, and OTEL_EXPORTER_OTLP_ENDPOINT to the collector's port for http, usually 4318.",
    })
  })

  it('leave with allowed attributes only: no reason, message, stack or event', () => {
    const sent: ReadableSpan[] = []
    const exporter: SpanExporter = {
      export: (spans, onResult) => (sent.push(...spans), onResult({ code: ExportResultCode.SUCCESS })),
      shutdown: () => Promise.resolve(),
    }
    const span = {
      name: 'TerminateWorkflow',
      spanContext: () => ({ traceId: 't', spanId: 's', traceFlags: 1 }),
      attributes: { temporalWorkflowId: 'import-1', temporalTerminateReason: 'Rosa asked for it' },
      status: { code: 2, message: 'Rosa asked for it' },
      events: [{ name: 'exception', time: [0, 0], attributes: { 'exception.message': 'Rosa' } }],
      links: [],
    } as unknown as ReadableSpan
    toGuardedExporter({ exporter, origin: 'http://x', warn: () => {} }).export([span], () => {})
    expect(sent[0]?.spanContext()).toMatchObject({ traceId: 't' })
    expect(sent).toMatchObject([
      { name: 'TerminateWorkflow', attributes: { temporalWorkflowId: 'import-1' }, status: { code: 2 } },
    ])
    expect(JSON.stringify([sent[0]?.attributes, sent[0]?.status, sent[0]?.events])).not.toContain('Rosa')
  })

  it('that a collector does not take are reported once, and again once it was back', () => {
    const { SUCCESS, FAILED } = ExportResultCode
    const codes = [FAILED, FAILED, SUCCESS, FAILED]
    const problems: string[] = []
    const results: number[] = []
    const exporter: SpanExporter = {
      export: (_, onResult) => onResult({ code: codes.shift() ?? FAILED, error: new Error('Bad Gateway') }),
      shutdown: () => Promise.resolve(),
    }
    const guarded = toGuardedExporter({ exporter, origin: 'http://x', warn: (text) => problems.push(text) })
    for (let batch = 0; batch < 4; batch += 1) guarded.export([], ({ code }) => results.push(code))
    const sentence = 'Traces do not reach http://x (Bad Gateway); runs continue without them.'
    expect(problems).toEqual([sentence, sentence])
    expect(results).toEqual([SUCCESS, SUCCESS, SUCCESS, SUCCESS])
  })
})
