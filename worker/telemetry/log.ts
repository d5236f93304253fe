import { DefaultLogger, Runtime, type Logger, type TelemetryOptions } from '@temporalio/worker'
import { outwardMessage } from '../../core/runs/errors.ts'
import { toPrintable, toPrintableLine } from '../../core/runs/view/format.ts'
import { freePorts } from '../free-ports.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

type Fields = Readonly<Record<string, unknown>>

interface Line {
  time: Date
  level: LogLevel
  message: string
  fields: Fields
}

/** Fields of the SDK that are not useful. */
const noise = new Set(['taskToken', 'namespace', 'isLocal', 'sdkComponent', 'workflowRunId', 'activityId'])

/** What the SDK says of each worker: those of ranges have no workflows, and none has Nexus services. */
const noiseMessages = new Set([
  'No workflows registered, not polling for workflow tasks',
  'No Nexus services registered, not polling for Nexus tasks',
])

/** Writes the SDK's log lines and ours to stderr, each with its run, as JSON or as text. */
export function createLogger(options: {
  level: LogLevel
  /** Default: text on a terminal, else JSON. */
  format?: 'json' | 'text' | undefined
  write?: (text: string) => void
}): Logger {
  const {
    format = process.stderr.isTTY ? 'text' : 'json',
    write = (text) => void process.stderr.write(text),
  } = options
  const toText = format === 'json' ? toJson : toTextLine
  const least = options.level.toUpperCase() as Uppercase<LogLevel>
  return new DefaultLogger(least, ({ level, message, meta, timestampNanos }) => {
    if (noiseMessages.has(message)) return
    const time = new Date(Number(timestampNanos / 1_000_000n))
    const fields = toFields(meta ?? {})
    write(`${toText({ time, level: level.toLowerCase() as LogLevel, message, fields })}\n`)
  })
}

/** Puts the run first; reduces errors to name and message, because stacks do not help operators. */
function toFields(meta: Fields): Fields {
  const { workflowId } = meta
  const run = typeof workflowId === 'string' ? { run: workflowId } : {}
  const kept = Object.entries(meta).filter(([name]) => !noise.has(name) && name !== 'workflowId')
  return { ...run, ...Object.fromEntries(kept.map(([name, value]) => [name, toPlain(value)])) }
}

function toPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (!(value instanceof Error)) return isWritable(value) ? value : String(value)
  const { name, cause } = value
  return { name, message: outwardMessage(value), ...(cause instanceof Error && { cause: toPlain(cause) }) }
}

/** Whether a value can be written as JSON (no cycles, no nested bigints): a log line must not end a step. */
function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

/** Lets no field override time, level and message. */
function toJson({ time, level, message, fields }: Line): string {
  const own = { time: time.toISOString(), level, message }
  return toPrintable(JSON.stringify({ ...own, ...fields, ...own }))
}

/** `16:20:31 INFO  read  run=export-1 resource=customers page=12` */
function toTextLine({ time, level, message, fields }: Line): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  )
  const parts = [time.toTimeString().slice(0, 8), level.toUpperCase().padEnd(5), message, ...pairs]
  // Text from the service must not start a new line or control the terminal.
  return toPrintableLine(parts.join(' '))
}

/** The SDK's own metrics, in the text format of Prometheus. */
type SdkMetrics = () => Promise<string>

let installed: Promise<SdkMetrics | undefined> | undefined

/**
 * Sets up the SDK's runtime, once per process: the options of a second worker have no effect. Returns the
 * SDK's metrics if requested.
 */
export function installRuntime(options: {
  logger: Logger
  level: LogLevel
  metrics: boolean
}): Promise<SdkMetrics | undefined> {
  installed ??= install(options)
  return installed
}

async function install({ logger, level, metrics }: Parameters<typeof installRuntime>[0]) {
  // The SDK serves its own metrics but does not report a port it chose itself. Our server includes them.
  const [port] = metrics ? await freePorts(1) : []
  const address = port === undefined ? undefined : `127.0.0.1:${port}`
  const least = level.toUpperCase() as Uppercase<LogLevel>
  const telemetryOptions: TelemetryOptions = {
    // Otherwise the SDK's native part would write to stdout, which is reserved for a command's result. At
    // level DEBUG it logs every call, which is unreadable.
    logging: { forward: {}, filter: { core: least === 'DEBUG' ? 'INFO' : least, other: 'WARN' } },
    ...(address !== undefined && { metrics: { prometheus: { bindAddress: address } } }),
  }
  Runtime.install({
    logger,
    telemetryOptions,
    // The command line handles Ctrl-C and SIGTERM; the runtime must not.
    shutdownSignals: [],
  })
  return address === undefined ? undefined : () => read(`http://${address}/metrics`)
}

async function read(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
  return await response.text()
}
