import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { decodeText } from './env-file.ts'
import type { Given } from './environment.ts'
import { described } from './variables.ts'

/** The variables that may also be set as a file path, in `<NAME>_FILE`. */
export const inFiles = described.flatMap(([name, { secret }]) => (secret === true ? [name] : []))

/**
 * All set variables, including secrets from files of their own; adds problems with those files to
 * `problems`.
 */
export function takeSecretFiles(options: {
  environment: ReadonlyMap<string, Given>
  problems: string[]
}): ReadonlyMap<string, Given> {
  const { environment, problems } = options
  const taken = new Map(environment)
  for (const name of inFiles) {
    const named = environment.get(`${name}_FILE`)
    if (named === undefined) continue
    if (environment.has(name)) {
      problems.push(`${name} and ${name}_FILE are both set; remove one.`)
      continue
    }
    const file = resolve(named.folder, named.text)
    const text = read(file)
    if (text === undefined || text === '') {
      const wrong = text === '' ? 'is empty' : 'cannot be read'
      problems.push(`${name}_FILE names ${file}, which ${wrong}; put the value in it and nothing else.`)
    } else taken.set(name, { text, from: file, folder: dirname(file) })
  }
  return taken
}

function read(file: string): string | undefined {
  try {
    return decodeText(readFileSync(file)).trim()
  } catch {
    return undefined
  }
}
