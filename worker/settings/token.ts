import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { headerValue } from './kinds.ts'

/** Gives the API token; `fresh` reads its file again, for a token that was changed while a run goes on. */
export type Token = (options?: { fresh?: boolean }) => Promise<string>

export function fixedToken(token: string): Token {
  return () => Promise.resolve(token)
}

/** Reads the file at once, so that a missing or empty one is a wrong setting and not a failed run. */
export function tokenFromFile(file: string): Token {
  let token = parseToken(file, readFileSync(file, 'utf8'))
  return async (options) => {
    if (options?.fresh === true) token = await readAgain(file)
    return token
  }
}

/** Whoever replaces a token may empty its file first, or take it away for a moment. */
const tries = 10
const waitMs = 100

async function readAgain(file: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return parseToken(file, await readFile(file, 'utf8'))
    } catch (cause) {
      if (attempt === tries) throw new TokenFileError(file, { cause })
    }
    await wait(waitMs)
  }
}

function parseToken(file: string, content: string): string {
  const parsed = headerValue.safeParse(content.trim())
  if (!parsed.success) throw new TokenFileError(file)
  return parsed.data
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
