import type * as S3 from '@aws-sdk/client-s3'
import type * as LibStorage from '@aws-sdk/lib-storage'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { BucketAddress } from './bucket-address.ts'
import { statusOf, toStoreError, UploadGoneError } from './bucket-errors.ts'
import { isSystemError } from './system-errors.ts'
import { StoreAwayError } from './store-errors.ts'
import type { FileStore, StoredFile, TaggedText } from './file-store.ts'

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
    // With its end, a file that grows is kept as it was.
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
          for (const { Key = '', Size: bytes = 0, LastModified } of page.Contents ?? [])
            files.push({
              path: Key.slice(keyOf('').length),
              bytes,
              // Without a time, it counts as new.
              changedAt: LastModified?.getTime() ?? Date.now(),
            })
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
