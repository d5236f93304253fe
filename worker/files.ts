import type { BucketAddress } from '../core/storage/bucket-address.ts'
import { createBucketStore } from '../core/storage/bucket-store.ts'
import type { FileStore } from '../core/storage/file-store.ts'
import { SettingsError } from './settings/errors.ts'
import { isConfidential } from './settings/kinds.ts'

/**
 * Opens a bucket with the SDK's own variables. Those of `.env` are handed over, because the SDK reads the real
 * environment only.
 */
export function openBucket(
  address: BucketAddress,
  environment: Readonly<Record<string, string | undefined>>,
): FileStore {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
    AWS_ENDPOINT_URL_S3,
    AWS_ENDPOINT_URL,
    AWS_REGION: region,
    AWS_PROFILE: profile,
  } = environment
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
  const endpoint = AWS_ENDPOINT_URL_S3 ?? AWS_ENDPOINT_URL
  if (endpoint !== undefined)
    checkEndpoint(endpoint, { allowHttp: environment['BILLING_ALLOW_HTTP'] === 'true' })
  return createBucketStore({ ...address, config: { endpoint, region, profile, credentials } })
}

/** @throws {SettingsError} */
function checkEndpoint(endpoint: string, { allowHttp }: { allowHttp: boolean }): void {
  const name = 'AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL)'
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    throw new SettingsError([
      `${name} is not an http or https address; use one like https://storage.example.com.`,
    ])
  if (!allowHttp && !isConfidential(endpoint))
    throw new SettingsError([
      `${name} would send exports over unencrypted http; use https, or set BILLING_ALLOW_HTTP=true if you trust the network.`,
    ])
}

/** The store of published files; undefined if the settings name none. */
export const openFiles = (settings: {
  filesUrl: BucketAddress | undefined
  environment: Readonly<Record<string, string | undefined>>
}): FileStore | undefined => settings.filesUrl && openBucket(settings.filesUrl, settings.environment)
