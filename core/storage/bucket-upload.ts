import type { S3Client } from '@aws-sdk/client-s3'
import type * as LibStorage from '@aws-sdk/lib-storage'
import { open, type FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'

/**
 * In bytes. A smaller file is sent in one call: a part of a read, at most 16 MB and what one page adds to it, would take
 * five calls and be copied in memory. Of a larger file, two parts of it are in memory at once, and it has at most 10,000.
 */
const mostAtOnce = 20 * 2 ** 20
/** In bytes: a smaller file gets a buffer of its own size, because many of them may be sent at once. */
const leastKept = 2 ** 20
const leastPartSize = 8 * 2 ** 20
const mostParts = 9_000

/** In bytes: by 64 KB, Node's default, each 8 MB would take 128 calls of the thread pool. */
const highWaterMark = 2 ** 20

export interface UploadSdk {
  storage: typeof LibStorage
  client: S3Client
}

interface Place {
  Bucket: string
  Key: string
  ContentType: string
}

/** Sends local files to a bucket. Of one that was aborted, nothing is visible. */
export function createUpload() {
  /** One buffer for one file after the other: for every 64 MB of new buffers, V8 marks its whole heap. */
  let kept: Buffer | undefined
  let isTaken = false

  return upload

  async function upload(
    sdk: UploadSdk,
    { file, signal, ...to }: Place & { file: string; signal: AbortSignal | undefined },
  ): Promise<void> {
    await using handle = await open(file)
    const { size } = await handle.stat()
    if (size <= mostAtOnce)
      return await withBuffer(size, async (buffer) => {
        const Body = await readAll(handle, buffer, size)
        await send(sdk, { ...to, Body, partSize: mostAtOnce, signal })
      })
    // With an end, the SDK knows how many parts there must be, and refuses a file that was cut short.
    const Body = handle.createReadStream({ start: 0, end: size - 1, autoClose: false, highWaterMark })
    try {
      const partSize = Math.max(leastPartSize, Math.ceil(size / mostParts))
      await send(sdk, { ...to, Body, partSize, signal })
    } finally {
      Body.destroy()
    }
  }

  async function withBuffer(size: number, work: (buffer: Buffer) => Promise<void>): Promise<void> {
    if (isTaken || size < leastKept) return await work(Buffer.allocUnsafeSlow(size))
    isTaken = true
    const buffer = kept ?? Buffer.allocUnsafeSlow(mostAtOnce)
    // After an error, a request may still be sending it.
    kept = undefined
    try {
      await work(buffer)
      kept = buffer
    } finally {
      isTaken = false
    }
  }
}

async function send(
  { storage, client }: UploadSdk,
  body: Place & { Body: Buffer | Readable; partSize: number; signal: AbortSignal | undefined },
): Promise<void> {
  const { partSize, signal, ...params } = body
  const uploading = new storage.Upload({ client, params, queueSize: 2, partSize })
  const abort = () => void uploading.abort()
  signal?.addEventListener('abort', abort)
  try {
    signal?.throwIfAborted()
    await uploading.done()
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

/** Reads a file into a buffer, up to the size that it had. */
async function readAll(file: FileHandle, buffer: Buffer, size: number): Promise<Buffer> {
  let length = 0
  while (length < size) {
    const { bytesRead } = await file.read(buffer, length, size - length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}
