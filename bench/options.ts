import { readFileSync } from 'node:fs'
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'

/**
 * The options of a benchmark. `--help` prints the comment at the top of its file and ends the process; so does, with one
 * sentence, an option that it does not have.
 */
export function readOptions<const T extends ParseArgsOptionsConfig>(file: string, options: T) {
  if (process.argv.includes('--help')) {
    console.log(usageIn(readFileSync(file, 'utf8')))
    process.exit(0)
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\nSee --help.`)
    return process.exit(2)
  }
}

function usageIn(source: string): string {
  const lines = source.split('\n')
  const comment = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('//')),
  )
  return comment.map((line) => line.replace(/^\/\/ ?/, '')).join('\n')
}
