/** Returns the token. `fresh`: read the source again, because the service rejected the previous token. */
export type TokenSource = (options?: { fresh: boolean }) => Promise<string>

/** The token in use, and how it is renewed. */
export class Authorization {
  readonly #source: TokenSource
  #token: string | undefined

  constructor(source: TokenSource) {
    this.#source = source
  }

  async token(): Promise<string> {
    this.#token ??= toToken(await this.#source())
    return this.#token
  }

  /** Called with the token that got a 401. Returns the token to try instead, if there is another. */
  async renewed(rejected: string): Promise<string | undefined> {
    if (this.#token === rejected) this.#token = toToken(await this.#source({ fresh: true }))
    return this.#token === rejected ? undefined : this.#token
  }
}

function toToken(token: string): string {
  if (!/^[\u0021-\u007e]+$/.test(token))
    throw new TypeError('the token is empty or contains spaces or control characters; use the bare token')
  return token
}
