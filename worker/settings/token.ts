import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { decodeText } from './env-file.ts'
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

/** Reads the file at once, so that a missing or empty one is an invalid setting rather than a failed run. */
export function tokenFromFile(file: string): Token {
  /** Undefined once the file was found without one. */
  let token: string | undefined = parseToken(file, readFileSync(file))
  // Not the last token given: another request may have been given the new one before the wait for it begins.
  let rejected: string | undefined
  const give = async (options?: { rejected: string }) => {
    if (options === undefined && token !== undefined) return token
    if (options !== undefined) rejected = options.rejected
    token = undefined
    try {
      return (token = await readAgain(file))
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
        if ((await readOnce(file).catch(() => rejected)) !== rejected) return
        await wait(pollMs, undefined, { signal })
      }
    },
  })
}

const pollMs = 1_000

/** A token file may be briefly empty or missing while it is replaced. */
const tries = 10
const waitMs = 100

async function readAgain(file: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readOnce(file)
    } catch (cause) {
      if (attempt === tries) throw new TokenFileError(file, { cause })
    }
    await wait(waitMs)
  }
}

async function readOnce(file: string): Promise<string> {
  return parseToken(file, await readFile(file))
}

function parseToken(file: string, content: Uint8Array): string {
  const token = decodeText(content).trim()
  if (!visibleAscii.test(token)) throw new TokenFileError(file)
  return token
}

export class TokenFileError extends Error {
  override name = 'TokenFileError' as const
  readonly retryable = false
  constructor(file: string, options?: ErrorOptions) {
    super(
      `The token file ${file} does not hold exactly one token; put the token in it and nothing else.`,
      options,
    )
  }
}
