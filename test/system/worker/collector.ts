import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import protobuf from 'protobufjs'
import { onTestFinished } from 'vitest'

/** The part of opentelemetry/proto/collector/trace/v1 that the tests read. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string text = 1; bool flag = 2; int64 whole = 3; double number = 4; } }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    fixed64 start = 7;
    fixed64 end = 8;
    repeated KeyValue attributes = 9;
    repeated Event events = 11;
    Status status = 15;
  }
  message Event { string name = 2; }
  message Status { string message = 2; int32 code = 3; }
`)

type Attributes = readonly { key: string; value: Record<string, unknown> }[]

interface Decoded {
  resourceSpans: {
    resource: { attributes: Attributes }
    scopeSpans: {
      spans: {
        traceId: string
        spanId: string
        parentSpanId: string
        name: string
        start: string
        end: string
        attributes: Attributes
        events: unknown[]
        status: { message: string; code: number }
      }[]
    }[]
  }[]
}

const plain = (attributes: Attributes) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

function decode(body: Buffer) {
  const type = root.lookupType('Request')
  const { resourceSpans } = type.toObject(type.decode(body), {
    bytes: String,
    longs: String,
    defaults: true,
    oneofs: false,
  }) as Decoded
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        traceId: Buffer.from(span.traceId, 'base64').toString('hex'),
        attributes: plain(span.attributes),
        resource: plain(resource.attributes),
      })),
    ),
  )
}

/** A receiver of traces (OTLP, http/protobuf). One that is silent takes a request and never answers. */
export async function startCollector({ isSilent = false } = {}) {
  const bodies: Buffer[] = []
  const headers: NodeJS.Dict<string | string[]>[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      bodies.push(Buffer.concat(chunks))
      headers.push(request.headers)
      if (!isSilent) response.writeHead(request.url === '/v1/traces' ? 200 : 404).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, bodies, headers, spans: () => bodies.flatMap(decode) }
}
