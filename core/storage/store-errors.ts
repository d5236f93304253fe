/** The object store does not answer, or asks to come back later. */
export class StoreAwayError extends Error {
  override readonly name = 'StoreAwayError'
  readonly retryable = true
}

/** The object store does not permit a call: the bucket, the rights, the credentials or the region are wrong. */
export class StoreRefusedError extends Error {
  override readonly name = 'StoreRefusedError'
  readonly retryable = false
}

/** The object store ignores a condition of a write, so a pointer could go back, or a manifest be replaced. */
export class ConditionIgnoredError extends Error {
  override readonly name = 'ConditionIgnoredError'
  readonly retryable = false
  constructor({ where, condition }: { where: string; condition: 'If-None-Match' | 'If-Match' }) {
    super(
      `The object store of ${where} ignores ${condition}: two runs could replace each other's files, and a pointer` +
        ' could go back to an older export. Use one with conditional writes, and correct CONNECTOR_FILES_URL.',
    )
  }
}
