import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of a program that PATH has under one of these names, or of the one that `said` names. */
export function findProgram(wanted: {
  names: readonly string[]
  /** Named by the environment, in `variable`. */
  variable: string
  /** How to get it, in one clause. */
  install: string
}): string {
  const { names, variable, install } = wanted
  const said = process.env[variable]
  if (said && isExecutable(said)) return said
  if (said) throw new Error(`${variable} names ${said}, and there is no program.`)
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const places = folders.flatMap((folder) => names.map((name) => join(folder, name)))
  const found = places.find(isExecutable)
  if (found !== undefined) return found
  throw new Error(
    `There is no ${names[0]} for the tests: install it (${install}), or name one in ${variable}.`,
  )
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
