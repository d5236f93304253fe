import type { BucketAddress } from './bucket-address.ts'
import { StoreAwayError, StoreRefusedError } from './store-errors.ts'

/** Where a call went, for its message. */
export interface BucketPlace extends BucketAddress {
  /** The endpoint's host, unless it is the provider's own. */
  host?: string | undefined
}

/** The store no longer has an upload of several parts: an earlier reply to its completion may have been lost. */
export class UploadGoneError extends StoreAwayError {}

/** The parts of an error of the SDK that we rely on; its message may quote anything and is never shown. */
export interface SdkError {
  name?: unknown
  code?: unknown
  message?: unknown
  $metadata?: { httpStatusCode?: unknown }
}

export const statusOf = (error: unknown): number => {
  const status = (error as SdkError | undefined)?.$metadata?.httpStatusCode
  return typeof status === 'number' ? status : 0
}

/** The name of an error, as S3 and the SDK call it: `NoSuchBucket`, `TimeoutError`, `ECONNREFUSED`. */
function nameOf(error: unknown): string {
  const { name, code } = (error ?? {}) as SdkError
  const known = typeof name === 'string' && !/^(Error|Unknown|UnknownError|\d+)$/.test(name) ? name : code
  return typeof known === 'string' && /^\w{1,60}$/.test(known) ? known : 'unknown error'
}

/** Translates an error of the SDK into one sentence and what to do about it. */
export function toStoreError(error: unknown, place: BucketPlace): StoreAwayError | StoreRefusedError {
  const { bucket, prefix, host } = place
  const where = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`
  const at = host === undefined ? '' : ` at ${host}`
  const name = nameOf(error)
  const status = statusOf(error)
  const message = String((error as SdkError | undefined)?.message)
  const refused = (sentence: string) => new StoreRefusedError(sentence)
  if (name === 'NoSuchUpload')
    return new UploadGoneError(`${where} lost an upload before it was complete. It is repeated.`)
  if (name === 'NoSuchBucket')
    return refused(`There is no bucket ${bucket}${at}. Create it, or correct CONNECTOR_FILES_URL.`)
  if (name === 'CredentialsProviderError' || /credential/i.test(name))
    return refused(
      `There are no credentials for ${where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.`,
    )
  if (/^Region (is missing|not accepted)/.test(message))
    return refused(`The region of ${where} is not set, or is none. Set AWS_REGION.`)
  if (/^(PermanentRedirect|AuthorizationHeaderMalformed|TemporaryRedirect)$/.test(name) || status === 301)
    return refused(
      `The bucket ${bucket} lies in another region (${name}). Set AWS_REGION to the region of the bucket.`,
    )
  if (
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|InvalidClientTokenId)$/.test(
      name,
    ) ||
    status === 401
  )
    return refused(
      `The object store${at} rejects the credentials (${name}). Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or AWS_PROFILE.`,
    )
  if (status === 403)
    return refused(
      `The credentials do not permit this in ${where} (${name}). Grant s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there.`,
    )
  if (status === 501)
    return refused(
      `The object store${at} does not implement a call (${name}) that the connector needs. Use another one.`,
    )
  if (status >= 400 && status < 500 && status !== 408 && status !== 429)
    return refused(`The object store${at} rejects a call for ${where} (${name}).`)
  return new StoreAwayError(
    `${where} cannot be reached${at} (${name}). Nothing is lost: the call is repeated when it is back.`,
  )
}
