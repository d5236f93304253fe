/** A slow step, shown to people while it runs. */
export type StartTask = (title: string) => { end(): void }

/** A way to get the binary into a file; returns the reason if it failed. */
export type Obtain = (options: { file: string; startTask: StartTask }) => Promise<string | undefined>
