/** The bytes of a file are no table that can be read: nothing in it was understood, and nothing was sent. */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFileError'
}

interface Outward extends ErrorOptions {
  /** The same message for Temporal, notifications and logs (`outwardMessage`): no cell, no text from a mapping. */
  withoutValues: string
}

/** What was said about the columns of a file (a mapping, a lookup, a locale) can't be meant. */
export class MappingError extends Error {
  override readonly name = 'MappingError'
  readonly withoutValues: string
  constructor(message: string, { withoutValues, ...options }: Outward) {
    super(message, options)
    this.withoutValues = withoutValues
  }
}

/** A file has problems, and so nothing of it may be sent. */
export class InvalidFileError extends Error {
  override readonly name = 'InvalidFileError'
  readonly withoutValues: string
  constructor(message: string, { withoutValues, ...options }: Outward) {
    super(message, options)
    this.withoutValues = withoutValues
  }
}
