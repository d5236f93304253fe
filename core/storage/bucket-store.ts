import type * as S3 from '@aws-sdk/client-s3'
import type * as LibStorage from '@aws-sdk/lib-storage'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import {
  type FileStore,
  StoreAwayError,
  type StoredFile,
  StoreRefusedError,
  type TaggedText,
} from './file-store.ts'
import { isSystemError } from './system-errors.ts'

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

/** What replaces the SDK's own environment variables; everything absent is found by the SDK. */
export interface BucketConfig {
  endpoint?: string | undefined
  region?: string | undefined
  profile?: string | undefined
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | undefined
}

/**
 * In bytes. A smaller file is sent in one call: a part of a read, at most 16 MB and what one page adds to it, would take
 * five calls and be copied in memory. Of a larger file, two parts of it are in memory at once, and it has at most 10,000.
 */
const mostAtOnce = 20 * 2 ** 20
const leastPartSize = 8 * 2 ** 20
const mostParts = 9_000

const mostTries = 5
const mostReads = 50

/**
 * A file store in a bucket. Its SDK takes some 20 MB, so it is loaded with the first call.
 *
 * A reply may be lost after a write has taken effect; the SDK then repeats the write, and its condition fails
 * because of the first one. So a failed condition is a conflict only if the present text is another.
 */
export function createBucketStore(options: BucketAddress & { config: BucketConfig }): FileStore {
  const { bucket: Bucket, prefix, config } = options
  const root = `s3://${Bucket}${prefix === '' ? '' : `/${prefix}`}`
  const keyOf = (path: string) => (prefix === '' ? path : `${prefix}/${path}`)
  const host = config.endpoint === undefined ? undefined : URL.parse(config.endpoint)?.host
  let loaded: Promise<Loaded> | undefined
  const load = () => (loaded ??= loadSdk(config))

  /** Calls the SDK and translates its errors. */
  async function call<T>(work: (sdk: Loaded) => Promise<T>): Promise<T> {
    try {
      return await work(await load())
    } catch (error) {
      // A local file that cannot be read.
      if (isSystemError(error) && error.path !== undefined) throw error
      throw toStoreError(error, { ...options, host })
    }
  }

  const get = (path: string) =>
    call(async ({ s3, client }) => {
      try {
        const { Body, ETag = '' } = await client.send(new s3.GetObjectCommand({ Bucket, Key: keyOf(path) }))
        return { stream: Body as Readable, tag: ETag }
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
    })

  async function* translateErrors(body: Readable): AsyncGenerator<Buffer> {
    try {
      yield* body as AsyncIterable<Buffer>
    } catch (error) {
      throw toStoreError(error, { ...options, host })
    }
  }

  async function readOnce(path: string): Promise<TaggedText | undefined> {
    // The SDK repeats a call until its reply begins, not when the reply breaks off.
    for (let tries = 1; ; tries += 1) {
      const body = await get(path)
      if (body === undefined) return undefined
      try {
        const chunks = await Array.fromAsync(translateErrors(body.stream))
        return { text: Buffer.concat(chunks).toString('utf8'), tag: body.tag }
      } catch (error) {
        if (tries === mostTries) throw error
      }
    }
  }

  /**
   * Some stores look up text and tag one after the other. An old text with the tag of a new one would let a pointer go
   * back, so only what two successive reads agree on is given.
   */
  async function read(path: string): Promise<TaggedText | undefined> {
    let before: TaggedText | undefined
    for (let tries = 0; tries < mostReads; tries += 1) {
      const found = await readOnce(path)
      if (found === undefined || (found.tag === before?.tag && found.text === before.text)) return found
      before = found
    }
    throw new StoreAwayError(`${root}/${path} changes too often to be read. The call is repeated.`)
  }

  /** Writes under a condition; false if it failed and the path has another text. */
  async function write(path: string, text: string, condition: { IfMatch: string } | { IfNoneMatch: '*' }) {
    const isWritten = await call(async ({ s3, client }) => {
      try {
        await client.send(
          new s3.PutObjectCommand({
            Bucket,
            Key: keyOf(path),
            Body: text,
            ContentType: typeOf(path),
            ...condition,
          }),
        )
        return true
      } catch (error) {
        // 409: another conditional write is in progress. 404: what the tag belonged to was removed.
        if (statusOf(error) === 412 || statusOf(error) === 409 || isMissing(error)) return false
        throw error
      }
    })
    return isWritten || (await read(path))?.text === text
  }

  async function upload(
    { storage, client }: Loaded,
    { path, file, signal }: { path: string; file: string; signal: AbortSignal | undefined },
  ): Promise<void> {
    const { size } = await stat(file)
    const isSmall = size <= mostAtOnce
    // `end` fixes the length: a file that grows during the upload is cut at its size now.
    const Body = isSmall ? await readFile(file) : createReadStream(file, { start: 0, end: size - 1 })
    const uploading = new storage.Upload({
      client,
      params: { Bucket, Key: keyOf(path), Body, ContentType: typeOf(path) },
      queueSize: 2,
      partSize: isSmall ? mostAtOnce : Math.max(leastPartSize, Math.ceil(size / mostParts)),
    })
    const abort = () => void uploading.abort()
    signal?.addEventListener('abort', abort)
    try {
      signal?.throwIfAborted()
      await uploading.done()
    } finally {
      signal?.removeEventListener('abort', abort)
      if (Body instanceof Readable) Body.destroy()
    }
  }

  return {
    locate: (path) => (path === '' ? root : `${root}/${path}`),
    pathOf: (location) => (location.startsWith(`${root}/`) ? location.slice(root.length + 1) : undefined),
    async put(path, file, { signal } = {}) {
      for (let tries = 1; ; tries += 1) {
        try {
          await call((sdk) => upload(sdk, { path, file, signal }))
          return
        } catch (error) {
          signal?.throwIfAborted()
          if (!(error instanceof UploadGoneError) || tries === mostTries) throw error
        }
      }
    },
    create: (path, text) => write(path, text, { IfNoneMatch: '*' }),
    read,
    readText: async (path) => (await readOnce(path))?.text,
    replace: (path, text, tag) =>
      write(path, text, tag === undefined ? { IfNoneMatch: '*' } : { IfMatch: tag }),
    open: async (path) => {
      const body = await get(path)
      return body && Readable.from(translateErrors(body.stream), { objectMode: false })
    },
    list: (path) =>
      call(async ({ s3, client }) => {
        const files: StoredFile[] = []
        const Prefix = path === '' ? keyOf('') : `${keyOf(path)}/`
        for await (const page of s3.paginateListObjectsV2({ client }, { Bucket, Prefix }))
          for (const { Key = '', Size: bytes = 0 } of page.Contents ?? [])
            files.push({ path: Key.slice(keyOf('').length), bytes })
        return files
      }),
    remove: (path) =>
      call(async ({ s3, client }) => {
        await client.send(new s3.DeleteObjectCommand({ Bucket, Key: keyOf(path) }))
      }),
  }
}

interface Loaded {
  s3: typeof S3
  storage: typeof LibStorage
  client: S3.S3Client
}

async function loadSdk(config: BucketConfig): Promise<Loaded> {
  const [s3, storage] = await Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')])
  const { endpoint, region, profile, credentials } = config
  const client = new s3.S3Client({
    ...(endpoint !== undefined && { endpoint }),
    // A store of one's own rarely has a domain name for each bucket.
    forcePathStyle: endpoint !== undefined,
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
    ...(credentials !== undefined && { credentials }),
    maxAttempts: mostTries,
    // Many other stores reject the checksums that the SDK adds by default.
    ...(endpoint !== undefined && {
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    }),
    requestHandler: { connectionTimeout: 5_000, socketTimeout: 30_000 },
  })
  return { s3, storage, client }
}

/** A missing object. A missing bucket is an error, and some stores answer 404 for unknown credentials. */
const isMissing = (error: unknown) => error instanceof Error && /^(NoSuchKey|NotFound)$/.test(error.name)

const contentTypes: Readonly<Record<string, string>> = {
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
  html: 'text/html; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
}

const typeOf = (path: string) =>
  contentTypes[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream'

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
