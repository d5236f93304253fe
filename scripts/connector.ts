#!/usr/bin/env -S MALLOC_MMAP_THRESHOLD_=65536 node --max-old-space-size=512 --max-semi-space-size=8
import './refuse-old-node.js'

// The flags (here and in package.json) keep the worker under 350 MB: with the defaults for a large machine, V8 lets
// 46 MB of live data grow to 300 before it collects (568 MB in total, measured at 100,000 customers; 323 with
// them). glibc, which reads the variable as the process starts, returns freed buffers of replies to the system
// instead of keeping them: some 20 MB less.
// Files written here and by Temporal's dev server (rows, personal data, the ledger) are accessible to this user
// only.
process.umask(0o077)
await import('./compile-cache.js')
const { runCommandLine } = await import('./command-line.ts')
const { commands } = await import('./commands/commands.ts')

await runCommandLine({ words: process.argv.slice(2), commands })
