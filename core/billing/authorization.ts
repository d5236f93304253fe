/** Returns the token. `rejected`: the token that the service rejected, so that the source is read again. */
export type TokenSource = (options?: { rejected: string }) => Promise<string>

/** The token in use, and how it is renewed. */
export class Authorization {
  readonly #source: TokenSource
  #token: string | undefined
  /** The token that replaced a rejected one, until the service accepts it. */
  #replacement: string | undefined

  constructor(source: TokenSource) {
    this.#source = source
  }

  async token(): Promise<string> {
    this.#token ??= toToken(await this.#source())
    return this.#token
  }

  /** Called with the token that got a 401. Returns the token to try instead, if there is another. */
  async renewed(rejected: string): Promise<string | undefined> {
    if (this.#token === rejected) this.#token = toToken(await this.#source({ rejected }))
    this.#replacement = this.#token === rejected ? undefined : this.#token
    return this.#replacement
  }

  /**
   * Like `renewed`, for a request that others repeat: also undefined if the rejected token is itself the replacement of
   * a rejected one. A source that has another token each time would never let such a request end.
   */
  async renewedOnce(rejected: string): Promise<string | undefined> {
    const isReplacement = rejected === this.#replacement
    const token = await this.renewed(rejected)
    if (!isReplacement) return token
    this.#replacement = undefined
    return undefined
  }

  /** Called with a token that the service has accepted. */
  accepted(token: string): void {
    if (token === this.#replacement) this.#replacement = undefined
  }
}

function toToken(token: string): string {
  if (!/^[\u0021-\u007e]+$/.test(token))
    throw new TypeError('the token is empty or contains spaces or control characters; use the bare token')
  return token
}
