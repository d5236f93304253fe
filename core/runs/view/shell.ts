/** As a shell takes it without quotes. */
const plain = /^[\w.:/@%+,=-]+$/

const quote = (argument: string): string =>
  plain.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`

/**
 * A command to type: shell`connector watch ${run}`. Each value is one word to a shell (a list: one word each), whatever
 * somebody called a run, a schedule or a file: `$(...)`, quotes and blanks mean nothing in it.
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
