#!/usr/bin/env -S node --max-old-space-size=512 --max-semi-space-size=8 --disable-warning=ExperimentalWarning
import { refuseOldNode } from './node-version.ts'

// The flags (here and in package.json) keep the worker under 350 MB: with the defaults of a large machine V8 lets
// 46 MB of live data grow to 300 before it collects (568 MB in all, measured at 100,000 customers; 323 with them).
// Node 22 calls its SQLite experimental; a warning at every start helps nobody.
refuseOldNode({ version: process.versions.node, words: process.argv.slice(2) })
// Everything written here and by Temporal's dev server is for this user alone: rows, personal data, the ledger.
process.umask(0o077)
await import('./compile-cache.ts')
await import('./demo/disposable-stack.ts')
const { runCommandLine } = await import('./command-line.ts')
const { commands } = await import('./commands/commands.ts')

await runCommandLine({ words: process.argv.slice(2), commands })
