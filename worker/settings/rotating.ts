import type { Logger, NativeConnection } from '@temporalio/worker'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { decodeText } from './environment.ts'
import { visibleAscii } from './kinds.ts'

// Secrets that people replace while processes run: the token of the service and the API key of Temporal.

/** Where a secret is written. */
export interface SecretPlace {
  file: string
  /** Default: the file holds the secret and nothing else. */
  find?: (content: string) => string | undefined
}

/** The secret as its file has it now; undefined if the file, which may be being replaced, holds none. */
function readSecret({ file, find = (content) => content }: SecretPlace): string | undefined {
  try {
    const secret = find(decodeText(readFileSync(file)))?.trim() ?? ''
    return visibleAscii.test(secret) ? secret : undefined
  } catch {
    return undefined
  }
}

/** Returns the API token; with `rejected`, the token that the service no longer accepts, reads its file again. */
export interface Token {
  (options?: { rejected: string }): Promise<string>
  /**
   * Resolves once the file holds a token other than the last rejected one; absent if the token is not from a file.
   */
  replaced?: (signal: AbortSignal) => Promise<void>
}

export const fixedToken =
  (token: string): Token =>
  () =>
    Promise.resolve(token)

const pollMs = 1_000

/**
 * Reads the file at once, so that a missing or empty one is an invalid setting rather than a failed run.
 * @throws {TokenFileError}
 */
export function tokenFromFile(place: SecretPlace): Token {
  /** Undefined once the file was found without one. */
  let token = readSecret(place)
  if (token === undefined) throw new TokenFileError(place.file)
  // Not the last token returned: another request may have taken the new one before the wait for it begins.
  let lastRejected: string | undefined
  const give = async (options?: { rejected: string }) => {
    if (options === undefined && token !== undefined) return token
    if (options !== undefined) lastRejected = options.rejected
    token = readSecret(place)
    if (token !== undefined) return token
    // Any token will do, even the same one.
    lastRejected = undefined
    throw new TokenFileError(place.file)
  }
  return Object.assign(give, {
    async replaced(signal: AbortSignal) {
      // Polled, because a watch misses a mounted secret, whose directory is replaced by a symbolic link.
      while ((readSecret(place) ?? lastRejected) === lastRejected) await wait(pollMs, undefined, { signal })
      signal.throwIfAborted()
    },
  })
}

export class TokenFileError extends Error {
  override name = 'TokenFileError' as const
  readonly retryable = false
  constructor(file: string) {
    super(`The file ${file} does not hold a valid token; correct the token in it.`)
  }
}

/** Returns a function that gives Temporal's API key from a file, re-read after one second. */
export function readApiKey(file: string): () => string {
  let key = ''
  let readAt = -Infinity
  return () => {
    if (performance.now() - readAt < pollMs) return key
    readAt = performance.now()
    // While the file is being replaced, it may be missing or empty: keep the last key.
    return (key = readSecret({ file }) ?? key)
  }
}

/** Updates a connection's API key whenever its file changes, until disposed. */
export function followApiKey(options: {
  file: string
  connection: Pick<NativeConnection, 'setApiKey'>
  logger: Logger
}): Disposable {
  const { file, connection, logger } = options
  let used = readSecret({ file })
  const timer = setInterval(() => {
    const key = readSecret({ file })
    if (key === undefined || key === used) return
    used = key
    connection.setApiKey(key).then(
      () => logger.info('uses the new API key for Temporal'),
      (error: unknown) => logger.error('could not use the new API key for Temporal', { error }),
    )
  }, pollMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
