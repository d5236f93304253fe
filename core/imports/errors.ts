import { connector } from '../runs/view/shell.ts'
/** A message with the values of a file, and the same without them. */
interface Message {
  message: string
  withoutValues: string
}

class Quote {
  readonly text: string
  readonly instead: string
  constructor(text: string, instead: string) {
    this.text = text
    this.instead = instead
  }
}

/** A cell or a text of a mapping in a message, and what Temporal, notifications and logs get instead of it. */
export const quote = (text: string, instead = '…') => new Quote(text, instead)

/** A message whose values are marked with `quote`. */
export function say(texts: TemplateStringsArray, ...parts: (string | number | Quote)[]): Message {
  const fill = (toText: (quoted: Quote) => string) =>
    String.raw({ raw: texts }, ...parts.map((part) => (part instanceof Quote ? toText(part) : part))).trim()
  return { message: fill(({ text }) => text), withoutValues: fill(({ instead }) => instead) }
}

/** A file, or how it is to be read, is refused. Nothing was sent. */
export class FileRefusal extends Error {
  readonly retryable = false
  /** For Temporal, notifications and logs. */
  readonly withoutValues: string
  /** A plain text has no values. */
  constructor(message: string | Message, options?: ErrorOptions) {
    super(typeof message === 'string' ? message : message.message, options)
    this.withoutValues = typeof message === 'string' ? message : message.withoutValues
  }
}

/** The file's bytes are not a table, or its rows have problems. */
export class InvalidFile extends FileRefusal {
  override readonly name = 'InvalidFile'
}

/** The options for the columns of a file (a mapping, a lookup, a locale) cannot be used. */
export class InvalidMapping extends FileRefusal {
  override readonly name = 'InvalidMapping'
}

/** A stored copy is gone. A step tries again, because somebody may put it back. */
export class MissingInput extends Error {
  override readonly name = 'MissingInput'
  constructor(path: string, options: ErrorOptions) {
    super(
      `The stored copy of the import's file, ${path}, is missing. Put it back, from a backup or the data folder that the run had.`,
      options,
    )
  }
}

/** Another run did rows of the file, or the service already has them. Nothing was sent. */
export class RowsTaken extends Error {
  override readonly name = 'RowsTaken'
  readonly retryable = false
}

/** This worker was started for another command, so the run waits for a worker that may send it. */
export class ReservedWorker extends Error {
  override readonly name = 'ReservedWorker'
  constructor({ run }: { run: string }) {
    super(
      `The run ${run} is waiting: this worker belongs to another command. To resume it, run its own command again, or \`${connector`up`}\`.`,
    )
  }
}

/** The first names of many. `of`: how many there are. */
export function few(
  names: readonly (string | number)[],
  {
    separator = ', ',
    most = 10,
    of = names.length,
  }: { separator?: string; most?: number; of?: number | undefined } = {},
): string {
  const shown = names.slice(0, most)
  const more = of - shown.length
  return `${shown.join(separator)}${more > 0 ? ` and ${more} more` : ''}`
}
