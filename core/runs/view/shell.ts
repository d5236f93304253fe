/** Text that needs no shell quoting. */
const plain = /^[\w.:/@%+,=-]+$/

const quote = (argument: string): string =>
  plain.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`

declare global {
  /** Set where the shell has no other name for the program: by scripts/start.js, and at the start of the bundle. */
  var connectorProgram: string[] | undefined
}

/** How the program is typed in a clone. build-package.ts writes `connector` here, as it is in the package and the image. */
export const program = globalThis.connectorProgram?.map(quote).join(' ') ?? 'npx connector'

/**
 * A command line to type: shell`chmod 700 ${folder}`. Each value becomes one shell word (a list: one word
 * each), whatever the name of a run, schedule or file contains: `$(...)`, quotes and spaces have no effect.
 */
export const shell = (
  parts: TemplateStringsArray,
  ...values: readonly (string | number | readonly string[])[]
): string =>
  String.raw(
    { raw: parts },
    ...values.map((value) =>
      [value]
        .flat()
        .map((word) => quote(String(word)))
        .join(' '),
    ),
  )

/** A command of the connector to type: connector`run watch ${run}`. */
export const connector: typeof shell = (parts, ...values) => `${program} ${shell(parts, ...values)}`

/** `npx connector import retentions 'my file.csv' --on-invalid skip`, to type. */
export const connectorCommand = (words: readonly string[]): string => connector`${words}`
