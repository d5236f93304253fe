import type { Commands } from '../command-line.ts'

/** Every command; its file is loaded only when it is chosen. */
export const commands = {
  demo: {
    summary: 'run all three jobs against a sandbox',
    load: () => import('./demo.ts'),
  },
  init: { summary: 'set up: three questions, then .env and schedules.yaml', load: () => import('./init.ts') },
  check: { summary: 'check whether everything is in place', load: () => import('./check.ts') },
  preview: { summary: 'print some records of a list', load: () => import('./preview.ts') },
  export: { summary: 'export lists of the service', load: () => import('./export.ts') },
  fetch: { summary: 'export credit notes or cancellations by id', load: () => import('./fetch.ts') },
  publish: {
    summary: 'publish an earlier export again, from its kept parts',
    load: () => import('./publish.ts'),
  },
  verify: { summary: 'check an export against its manifest, offline', load: () => import('./verify.ts') },
  import: {
    summary: 'import a CSV file or a workbook, each row exactly once',
    load: () => import('./import.ts'),
  },
  template: { summary: 'print a CSV header with an example row', load: () => import('./template.ts') },
  recover: {
    summary: 'resume subscriptions that need attention, within bounds',
    load: () => import('./recover.ts'),
  },
  approve: { summary: 'approve what a run asks', load: () => import('./approve.ts') },
  resolve: { summary: 'record the outcome of a parked row', load: () => import('./resolve.ts') },
  limits: {
    summary: 'change the rate and the bounds of a run in progress',
    load: () => import('./limits.ts'),
  },
  runs: { summary: 'list the latest runs', load: () => import('./runs.ts') },
  status: { summary: 'show the state of a run', load: () => import('./status.ts') },
  watch: { summary: 'follow a run to its end', load: () => import('./watch.ts') },
  report: { summary: 'show the report of a run', load: () => import('./report.ts') },
  open: { summary: 'open the report page of a run', load: () => import('./open.ts') },
  pause: { summary: 'pause a run', load: () => import('./pause.ts') },
  unpause: { summary: 'resume a paused run', load: () => import('./unpause.ts') },
  stop: { summary: 'stop a run cleanly, with a report', load: () => import('./stop.ts') },
  schedule: {
    summary: 'manage scheduled runs: apply, list, pause, unpause, trigger, delete',
    load: () => import('./schedule.ts'),
  },
  up: { summary: 'run a Temporal dev server and a worker until Ctrl-C', load: () => import('./up.ts') },
  worker: { summary: 'run a worker until Ctrl-C', load: () => import('./worker.ts') },
  state: {
    summary: 'show and reset watermarks of exports, repair a state restored from a backup',
    load: () => import('./state.ts'),
  },
  prune: { summary: 'remove old exports and uploads that nothing needs', load: () => import('./prune.ts') },
  'move-state': {
    summary: 'move the state of the data folder to PostgreSQL',
    load: () => import('./move-state.ts'),
  },
  completion: { summary: 'print a completion script for your shell', load: () => import('./completion.ts') },
  sandbox: { summary: 'run a stand-in for the billing service', load: () => import('./sandbox.ts') },
} satisfies Commands
