import { DefaultLogger, type Logger } from '@temporalio/worker'
import { outwardMessage } from '../../core/runs/outward-message.ts'
import { toPrintable, toPrintableLine } from '../../core/runs/view/printable.ts'
import { runOf } from './run-id.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

type Fields = Readonly<Record<string, unknown>>

interface Line {
  time: Date
  level: LogLevel
  message: string
  fields: Fields
}

/** What the SDK adds to a line and nobody looks for. */
const noise = new Set(['taskToken', 'namespace', 'isLocal', 'sdkComponent', 'workflowRunId', 'activityId'])

/**
 * Writes the SDK's lines and ours on stderr, each with the run it belongs to: as a JSON document for machines or as
 * text for people.
 */
export function createLogger(options: {
  level: LogLevel
  format: 'json' | 'text'
  write?: (text: string) => void
}): Logger {
  const { format, write = (text) => void process.stderr.write(text) } = options
  const toText = format === 'json' ? toJson : toWords
  const least = options.level.toUpperCase() as Uppercase<LogLevel>
  return new DefaultLogger(least, ({ level, message, meta, timestampNanos }) => {
    const time = new Date(Number(timestampNanos / 1_000_000n))
    const fields = toFields(meta ?? {})
    write(`${toText({ time, level: level.toLowerCase() as LogLevel, message, fields })}\n`)
  })
}

/** The run first, as people know it; errors by name and message, because a stack says nothing to an operator. */
function toFields(meta: Fields): Fields {
  const { workflowId, workflowType } = meta
  const run = typeof workflowId === 'string' ? { run: runOf({ workflowId, workflowType }) } : {}
  const kept = Object.entries(meta).filter(([name]) => !noise.has(name) && name !== 'workflowId')
  return { ...run, ...Object.fromEntries(kept.map(([name, value]) => [name, toPlain(value)])) }
}

function toPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (!(value instanceof Error)) return isWritable(value) ? value : String(value)
  const { name, cause } = value
  return { name, message: outwardMessage(value), ...(cause instanceof Error && { cause: toPlain(cause) }) }
}

/** JSON knows no circles and no big numbers within an object; a line that can't be written must not end a step. */
function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

/** What a line says of itself is no field's to say. */
function toJson({ time, level, message, fields }: Line): string {
  const own = { time: time.toISOString(), level, message }
  return toPrintable(JSON.stringify({ ...own, ...fields, ...own }))
}

/** `16:20:31 INFO  read  run=export-1 resource=customers page=12` */
function toWords({ time, level, message, fields }: Line): string {
  const said = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  )
  const words = [time.toTimeString().slice(0, 8), level.toUpperCase().padEnd(5), message, ...said]
  // What a service says must neither begin a line of its own nor speak to the terminal.
  return toPrintableLine(words.join(' '))
}
