import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Given } from './environment.ts'
import { variables, type Variable } from './variables.ts'

/** The variables that may also be given as the path of a file. BILLING_TOKEN has rules of its own. */
export const inFiles = Object.entries<Variable>(variables)
  .filter(([name, { secret }]) => secret === true && name !== 'BILLING_TOKEN')
  .map(([name]) => name)

/** What is given, with the secrets that stand in files of their own (NAME_FILE); adds to `problems` what is wrong. */
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
      problems.push(`${name} and ${name}_FILE are both set; take one of them away.`)
      continue
    }
    const file = resolve(named.folder, named.text)
    const text = read(file)
    if (text === undefined || text === '') {
      const wrong = text === '' ? 'is empty' : "can't be read"
      problems.push(`${name}_FILE names ${file}, which ${wrong}; put the value in it and nothing else.`)
    } else taken.set(name, { text, from: file, folder: dirname(file) })
  }
  return taken
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}
