#!/usr/bin/env -S node --max-old-space-size=512 --max-semi-space-size=8 --disable-warning=ExperimentalWarning
import { refuseOldNode } from './node-version.ts'

refuseOldNode({ version: process.versions.node, words: process.argv.slice(2) })
// Whatever is written, here and by Temporal's dev server, is for this user alone: rows, personal data, the ledger.
process.umask(0o077)
await import('./compile-cache.ts')
await import('./demo/disposable-stack.ts')
const { runCommandLine } = await import('./command-line.ts')

// One command a file; command-line.ts says what such a file holds.
//
// The flags (here and in package.json) keep the worker under 350 MB: with the defaults of a large machine V8 lets
// 46 MB that live grow to 300 before it cleans up (568 MB in all, measured at 100,000 customers; 323 with them).
// To Node 22 its SQLite is an experiment; saying so on every start helps nobody.
await runCommandLine({
  words: process.argv.slice(2),
  commands: {
    demo: {
      summary: 'everything in one: Temporal, a stand-in service, a worker and an export',
      load: () => import('./commands/demo.ts'),
    },
    up: {
      summary: 'a Temporal dev server and the worker, until Ctrl-C',
      load: () => import('./commands/up.ts'),
    },
    worker: { summary: 'the worker alone, until Ctrl-C', load: () => import('./commands/worker.ts') },
    export: { summary: 'export lists of the service', load: () => import('./commands/export.ts') },
    fetch: {
      summary: 'fetch credit notes or cancellations by id',
      load: () => import('./commands/fetch.ts'),
    },
    publish: {
      summary: 'publish an export again, from kept parts',
      load: () => import('./commands/publish.ts'),
    },
    import: { summary: 'import a CSV file, each row once', load: () => import('./commands/import.ts') },
    recover: {
      summary: 'resume subscriptions that need attention, within bounds',
      load: () => import('./commands/recover.ts'),
    },
    template: { summary: 'a CSV header with an example row', load: () => import('./commands/template.ts') },
    approve: { summary: 'let a run go on that waits for it', load: () => import('./commands/approve.ts') },
    resolve: { summary: 'say what became of a parked row', load: () => import('./commands/resolve.ts') },
    limits: { summary: 'change the bounds of a run', load: () => import('./commands/limits.ts') },
    runs: { summary: 'the latest runs', load: () => import('./commands/runs.ts') },
    status: { summary: 'where a run is', load: () => import('./commands/status.ts') },
    watch: { summary: 'follow a run to its end', load: () => import('./commands/watch.ts') },
    report: { summary: 'the report of a run', load: () => import('./commands/report.ts') },
    pause: { summary: 'halt a run between two pages', load: () => import('./commands/pause.ts') },
    unpause: { summary: 'let a paused run go on', load: () => import('./commands/unpause.ts') },
    stop: { summary: 'end a run cleanly', load: () => import('./commands/stop.ts') },
    schedule: {
      summary: 'runs that come by themselves: apply, list, pause, unpause, trigger, delete',
      load: () => import('./commands/schedule.ts'),
    },
    check: { summary: 'is everything in place', load: () => import('./commands/check.ts') },
    restored: {
      summary: 'fix the ledger after a backup was restored, before the worker starts',
      load: () => import('./commands/restored.ts'),
    },
    verify: {
      summary: 'check an export against its manifest, offline',
      load: () => import('./commands/verify.ts'),
    },
    sandbox: { summary: 'the stand-in service on its own', load: () => import('./commands/sandbox.ts') },
  },
})
