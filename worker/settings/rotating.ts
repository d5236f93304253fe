import type { Logger, NativeConnection } from '@temporalio/worker'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { decodeText } from './environment.ts'
import { visibleAscii } from './kinds.ts'

/** Returns the API token; with `rejected`, the token that the service no longer accepts, reads its file again. */
export interface Token {
  (options?: { rejected: string }): Promise<string>
  /**
   * Resolves once the file holds a token other than the last rejected one; absent if the token is not from a file.
   */
  replaced?: (signal: AbortSignal) => Promise<void>
}

export function fixedToken(token: string): Token {
  return () => Promise.resolve(token)
}

/** Where a token is written: how to find it in the bytes of its file. */
export interface TokenPlace {
  file: string
  /** Default: the file holds the token and nothing else. */
  find?: (content: string) => string | undefined
}

/** Reads the file at once, so that a missing or empty one is an invalid setting rather than a failed run. */
export function tokenFromFile(place: TokenPlace): Token {
  /** Undefined once the file was found without one. */
  let token: string | undefined = parseToken(place, readFileSync(place.file))
  // Not the last token given: another request may have been given the new one before the wait for it begins.
  let rejected: string | undefined
  const give = async (options?: { rejected: string }) => {
    if (options === undefined && token !== undefined) return token
    if (options !== undefined) rejected = options.rejected
    token = undefined
    try {
      return (token = await readAgain(place))
    } catch (error) {
      // Any token will do, even the same one.
      rejected = undefined
      throw error
    }
  }
  return Object.assign(give, {
    async replaced(signal: AbortSignal) {
      // Polled, because a watch misses a mounted secret, whose directory is replaced by a symbolic link.
      for (;;) {
        signal.throwIfAborted()
        if ((await readOnce(place).catch(() => rejected)) !== rejected) return
        await wait(pollMs, undefined, { signal })
      }
    },
  })
}

const pollMs = 1_000

/** A token file may be briefly empty or missing while it is replaced. */
const tries = 10
const waitMs = 100

async function readAgain(place: TokenPlace): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readOnce(place)
    } catch (cause) {
      if (attempt === tries) throw new TokenFileError(place.file, { cause })
    }
    await wait(waitMs)
  }
}

async function readOnce(place: TokenPlace): Promise<string> {
  return parseToken(place, await readFile(place.file))
}

function parseToken({ file, find = (content) => content }: TokenPlace, bytes: Uint8Array): string {
  const token = find(decodeText(bytes))?.trim() ?? ''
  if (!visibleAscii.test(token)) throw new TokenFileError(file)
  return token
}

export class TokenFileError extends Error {
  override name = 'TokenFileError' as const
  readonly retryable = false
  constructor(file: string, options?: ErrorOptions) {
    super(`The file ${file} does not hold a valid token; correct the token in it.`, options)
  }
}

const readEveryMs = 1_000

/** Returns a function that gives Temporal's API key from a file, re-read after one second. */
export function readApiKey(file: string): () => string {
  let key = ''
  let readAt = -Infinity
  return () => {
    if (performance.now() - readAt < readEveryMs) return key
    readAt = performance.now()
    // While the file is being replaced, it may be missing or empty: keep the last key.
    return (key = keyIn(file) ?? key)
  }
}

function keyIn(file: string): string | undefined {
  try {
    const key = decodeText(readFileSync(file)).trim()
    return visibleAscii.test(key) ? key : undefined
  } catch {
    return undefined
  }
}

/** Updates a connection's API key whenever its file changes, until disposed. */
export function followApiKey(options: {
  file: string
  connection: Pick<NativeConnection, 'setApiKey'>
  logger: Logger
}): Disposable {
  const { file, connection, logger } = options
  let used = keyIn(file)
  const timer = setInterval(() => {
    const key = keyIn(file)
    if (key === undefined || key === used) return
    used = key
    connection.setApiKey(key).then(
      () => logger.info('uses the new API key for Temporal'),
      (error: unknown) => logger.error('could not use the new API key for Temporal', { error }),
    )
  }, readEveryMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
