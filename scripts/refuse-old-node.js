// The first import of each entry. Plain JavaScript without new syntax, so that an old Node can run it far enough to say
// what it needs.

/** The oldest Node whose SQLite, `using` and lossless JSON this uses; package.json names the same. */
const oldestNode = 24

const version = process.versions.node
if (Number(version.split('.')[0]) < oldestNode) {
  const message = `Node ${version} is too old; this needs Node ${oldestNode} or newer.`
  const hint =
    'Install it, or start the connector by the path of a newer one: /path/to/node24/bin/node $(command -v billing-connector). In a clone, `npm ci` brings one for `npm run connector`.'
  process.stderr.write(`error: ${message} ${hint}\n`)
  const document = { error: { name: 'OldNodeError', message, hint } }
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(document)}\n`)
  process.exit(2)
}
