/** Starts showing a slow step to the user; `end` marks it as finished. */
export type StartTask = (title: string) => { end(): void }

/** A way to write the binary to a file. Returns the reason if it failed. */
export type Obtain = (options: { file: string; startTask: StartTask }) => Promise<string | undefined>
