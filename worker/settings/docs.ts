import { readEnvironment } from './environment.ts'
import type { EnvironmentSource } from './environment.ts'
import { inFiles } from './secret-files.ts'
import { described, foreignVariables, shownText } from './variables.ts'
import type { Variable } from './variables.ts'

/** One setting in force, safe to print. */
export interface ListedSetting {
  name: string
  /** Quoted; `not shown` for a secret that is set; undefined if unset and without a default. */
  value: string | undefined
  /** Where it was set. */
  from: 'environment' | 'default' | (string & {})
  meaning: string
}

/** Every variable with its effective value, without secrets and without validation. */
export function listSettings(source: EnvironmentSource): ListedSetting[] {
  const environment = readEnvironment(source)
  return described.map(([name, variable]) => {
    const file = inFiles.includes(name) ? environment.get(`${name}_FILE`) : undefined
    const given = environment.get(name) ?? file
    const text = given?.text ?? variable.default
    const value = text === undefined ? variable.otherwise : shownText(variable, text)
    return { name, value, from: given?.from ?? 'default', meaning: variable.meaning }
  })
}

/** Renders docs/configuration.md. */
export function describeSettings(): string {
  return `# Configuration

Every setting is an environment variable. The file \`.env\` in the working directory is read too; the real environment
takes precedence, and an empty variable counts as unset. Each of its lines is blank, a comment (\`#\`) or
\`NAME=value\`; put a value with a \`#\` or several lines into quotes. Any other line is an error, and so is a name that is
a setting but for a letter. A relative path in \`.env\` or in a default is relative to the
working directory; one in the real environment is relative to the caller's. \`connector check\` prints the settings in
force, without secrets.

| variable | meaning | values | default |
|---|---|---|---|
${described
  .map(([name, variable]) =>
    row([`\`${name}\``, meaningOf(name, variable), variable.form, defaultOf(variable)]),
  )
  .join('\n')}

Variables that other programs read:

| variable | meaning |
|---|---|
${Object.entries(foreignVariables)
  .map(([names, meaning]) => row([names.replace(/[A-Z][A-Z0-9_]{2,}/g, '`$&`'), meaning]))
  .join('\n')}
`
}

const meaningOf = (name: string, { meaning }: Variable) =>
  inFiles.includes(name) ? `${meaning} Or set \`${name}_FILE\` to a file that contains it.` : meaning

const defaultOf = ({ default: text, otherwise = 'required' }: Variable) =>
  text === undefined ? otherwise : `\`${text}\``

function row(cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
