/** Something that takes a while, told to people while it does. */
export type StartTask = (title: string) => { end(): void }

/** A way to get the binary into a file; the sentence says why it could not. */
export type Obtain = (options: { file: string; startTask: StartTask }) => Promise<string | undefined>
