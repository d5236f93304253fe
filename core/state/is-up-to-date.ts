import { StateTooNewError } from './errors.ts'

/**
 * Whether every migration that this version knows was applied to a state.
 *
 * @throws {StateTooNewError} a migration was applied that this version does not know
 */
export function isUpToDate(options: {
  /** The state's name for people. */
  place: string
  known: readonly string[]
  applied: readonly string[]
}): boolean {
  const { place, known, applied } = options
  const newer = applied.find((name) => !known.includes(name))
  if (newer !== undefined) throw new StateTooNewError({ file: place, migration: newer })
  return applied.length === known.length
}
