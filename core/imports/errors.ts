/** The bytes of a file are no table that can be read: nothing in it was understood, and nothing was sent. */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFileError'
}

/** What was said about the columns of a file (a mapping, a lookup, a locale) can't be meant. */
export class MappingError extends Error {
  override readonly name = 'MappingError'
}

/** A file has problems, and so nothing of it may be sent. */
export class InvalidFileError extends Error {
  override readonly name = 'InvalidFileError'
}
