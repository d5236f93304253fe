/** The oldest supported Node: the first 22 whose SQLite has `timeout` and `columns()`. */
export const oldestNode = '22.16.0'

/**
 * Exits with a clear message if Node is too old. This file and its caller import nothing else and use no new
 * syntax, so that an old Node can run them far enough to print it.
 */
export function refuseOldNode({ version, words }: { version: string; words: readonly string[] }): void {
  if (!isOlder(version, oldestNode)) return
  const message = `Node ${version} is too old; this needs Node ${oldestNode} or newer.`
  const hint =
    'Install Node 24, or start it by its path: /path/to/node24/bin/node $(command -v billing-connector).'
  process.stderr.write(`error: ${message} ${hint}\n`)
  const document = { error: { name: 'OldNodeError', message, hint } }
  if (words.includes('--json')) process.stdout.write(`${JSON.stringify(document)}\n`)
  process.exit(2)
}

function isOlder(one: string, other: string): boolean {
  const [a, b] = [one, other].map((version) => version.split('.').map(Number))
  const at = [0, 1, 2].find((place) => a?.[place] !== b?.[place])
  return at !== undefined && Number(a?.[at]) < Number(b?.[at])
}
