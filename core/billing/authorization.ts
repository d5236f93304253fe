/** Where the token comes from. `fresh` means: look at the source again, what you gave is not accepted. */
export type TokenSource = (ask?: { fresh: boolean }) => Promise<string>

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

  /** Called with the token that got a 401. Gives the one to try instead, if there is another. */
  async renewed(rejected: string): Promise<string | undefined> {
    if (this.#token === rejected) this.#token = toToken(await this.#source({ fresh: true }))
    return this.#token === rejected ? undefined : this.#token
  }
}

function toToken(token: string): string {
  if (!/^[\u0021-\u007e]+$/.test(token))
    throw new TypeError(
      'the token is empty or holds spaces or control characters; put the bare token in place',
    )
  return token
}
