/** Text that needs no shell quoting. */
const plain = /^[\w.:/@%+,=-]+$/

const quote = (argument: string): string =>
  plain.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`

/**
 * A command to type: shell`connector watch ${run}`. Each value becomes one shell word (a list: one word
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

/** `connector import retentions file.csv --on-invalid skip`: options without a value, or with `false`, are omitted. */
export function connectorCommand(
  words: readonly (string | number)[],
  options: Readonly<
    Record<string, string | number | boolean | readonly (string | number)[] | undefined>
  > = {},
): string {
  const named = Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false || (typeof value === 'object' && value.length === 0)) return []
    if (value === true) return [`--${name}`]
    return [`--${name}`, typeof value === 'object' ? value.join(',') : String(value)]
  })
  return ['connector', ...words, ...named].map((word) => quote(String(word))).join(' ')
}
