import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** SHA-256 sums of files, one after the other. */
export interface Summing {
  /** Takes the next bytes of the file, which are not to be used by anyone else from here on. */
  add(bytes: Buffer): Promise<void>
  /** The sum of what was added since the last one, in hexadecimal digits. */
  end(): Promise<string>
  close(): Promise<void>
}

/** Below this a thread costs more than it saves (it takes about 40 ms to start, a sum 2.5 ms for each MB). */
const worthThread = 32 << 20

export const createSumming = (bytes: number): Summing =>
  bytes < worthThread ? createInlineSumming() : createThreadSumming()

function createInlineSumming(): Summing {
  let hash = createHash('sha256')
  return {
    async add(bytes) {
      hash.update(bytes)
    },
    async end() {
      const sum = hash.digest('hex')
      hash = createHash('sha256')
      return sum
    },
    close: async () => {},
  }
}

/** So many pieces may lie with the thread unsummed: enough to keep it busy, 8 MB at the most. */
const mostWaiting = 8

/**
 * The sum is the dearest part of publishing; on a thread of its own it is made while the next bytes are copied
 * and counted, and the process stays free to answer.
 */
function createThreadSumming(): Summing {
  const thread = new Worker(new URL('./sum-thread.ts', import.meta.url))
  const state: { waiting: number; answer: string; failure?: Error } = { waiting: 0, answer: '' }
  thread.on('message', (answer: string) => {
    state.waiting--
    state.answer = answer
  })
  thread.on('error', (failure) => {
    state.failure = failure
  })
  const waitUntilBelow = async (limit: number) => {
    // The listeners above come first: after each message the count is right.
    while (state.waiting >= limit) await once(thread, 'message')
  }
  const post = (message: Uint8Array<ArrayBuffer> | 'end') => {
    if (state.failure !== undefined) throw state.failure
    state.waiting++
    thread.postMessage(message, message === 'end' ? [] : [message.buffer])
  }
  return {
    async add(bytes) {
      await waitUntilBelow(mostWaiting)
      post(toOwn(bytes))
    },
    async end() {
      post('end')
      await waitUntilBelow(1)
      return state.answer
    },
    async close() {
      await thread.terminate()
    },
  }
}

/** Bytes with memory of their own, as only that can be handed to a thread; small buffers share theirs. */
function toOwn(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes
  return buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length
    ? new Uint8Array(buffer)
    : new Uint8Array(bytes)
}
