/** Text that needs no shell quoting. */
const plain = /^[\w.:/@%+,=-]+$/

const quote = (argument: string): string =>
  plain.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`

/**
 * A command to type: shell`connector run watch ${run}`. Each value becomes one shell word (a list: one word
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

/** `connector import retentions 'my file.csv' --on-invalid skip`, to type. */
export const connectorCommand = (words: readonly string[]): string =>
  ['connector', ...words].map(quote).join(' ')
