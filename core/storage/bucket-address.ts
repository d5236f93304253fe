/** A bucket and the beginning of every key in it. */
export interface BucketAddress {
  bucket: string
  /** Without slashes at its ends; empty for the whole bucket. */
  prefix: string
}

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** A part of the prefix: nothing that a program on the way would have to escape. */
const prefixPart = /^(?!\.{1,2}$)[\w.=+@!()'*-]+$/

/** Parses `s3://bucket/prefix`; undefined if it is written in any other way. */
export function parseBucketAddress(text: string): BucketAddress | undefined {
  const [, bucket, rest] = /^s3:\/\/([^/]+)(?:\/(.*))?$/s.exec(text) ?? []
  if (bucket === undefined || !bucketName.test(bucket)) return undefined
  const prefix = (rest ?? '').replace(/\/$/, '')
  const isPlain = prefix === '' || prefix.split('/').every((part) => prefixPart.test(part))
  return isPlain ? { bucket, prefix } : undefined
}
