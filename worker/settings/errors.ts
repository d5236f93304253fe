/** Every setting that is wrong or missing, one sentence each. */
export class SettingsError extends Error {
  override name = 'SettingsError' as const
  readonly exitCode = 2
  readonly hint = 'docs/configuration.md describes every variable.'
  readonly problems: readonly string[]

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join(' '), options)
    this.problems = problems
  }
}
