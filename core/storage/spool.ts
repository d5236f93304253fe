import { writeFileSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryName } from './durable.ts'

/** Values in the order in which they were added, on disk: any number of them, in constant memory. */
export interface Spool<Value> extends AsyncDisposable {
  add(value: Value): void
  /** All values, in batches. Can be read again; nothing may be added any more. */
  batches(): AsyncGenerator<Value[]>
}

/** Most values of a batch, and the characters that end one: a row may be long, and a text holds 512 MB at most. */
const batchSize = 1_000
const batchLength = 4_000_000

/**
 * Creates a spool of JSON values. Its file has no name as soon as it is open: nobody else can change it, and it is gone
 * when the process is.
 */
export async function createSpool<Value>(folder: string): Promise<Spool<Value>> {
  const path = temporaryName(join(folder, 'spool'))
  const file = await open(path, 'wx+')
  await rm(path)
  /** The bytes of each batch. */
  const lengths: number[] = []
  let pending: string[] = []
  let pendingLength = 0
  const flush = () => {
    const bytes = Buffer.from(`[${pending.join(',')}]`)
    writeFileSync(file.fd, bytes)
    lengths.push(bytes.length)
    pending = []
    pendingLength = 0
  }
  return {
    add(value) {
      const text = JSON.stringify(value)
      pending.push(text)
      pendingLength += text.length
      if (pending.length === batchSize || pendingLength >= batchLength) flush()
    },
    async *batches() {
      if (pending.length > 0) flush()
      let position = 0
      for (const length of lengths) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, position)
        if (bytesRead !== length) throw new Error(`a spool gave back ${bytesRead} of ${length} bytes`)
        position += length
        yield JSON.parse(buffer.toString()) as Value[]
      }
    },
    [Symbol.asyncDispose]: () => file.close(),
  }
}
