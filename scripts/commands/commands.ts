import type { Commands, Configure } from '../command-line.ts'

/** A command that a function of a file configures. The file is loaded only when the command is chosen. */
const command = <Name extends string = 'configure'>(
  summary: string,
  load: () => Promise<Readonly<Record<NoInfer<Name>, Configure>>>,
  name = 'configure' as Name,
) => ({ summary, load: async (): Promise<Configure> => (await load())[name] })

const reading = () => import('./export.ts')
const control = () => import('./run-control.ts')
const showing = () => import('./run-show.ts')
const state = () => import('./state.ts')
const schedules = () => import('../schedules/control.ts')

export const commands = {
  demo: command('run all three jobs against a sandbox', () => import('../demo/demo.ts')),
  init: command(
    'ask for the settings, try them, and write .env and schedules.yaml',
    () => import('./init.ts'),
  ),
  check: command('check whether everything is in place', () => import('./check.ts')),
  export: command('export lists of the service', reading, 'configureExport'),
  fetch: command('export credit notes or cancellations by id', reading, 'configureFetch'),
  import: command('import a CSV file or a workbook, each row exactly once', () => import('./import.ts')),
  recover: command('resume subscriptions that need attention, within bounds', () => import('./recover.ts')),
  run: {
    summary: 'list, follow and control runs',
    commands: {
      list: command('list the latest runs', () => import('./run-list.ts')),
      show: command('show the state of a run', showing, 'configureShow'),
      watch: command('follow a run to its end', showing, 'configureWatch'),
      report: command('show the report of a run', showing, 'configureReport'),
      open: command('open the page of a run in the browser', showing, 'configureOpen'),
      pause: command('pause a run', control, 'configurePause'),
      unpause: command('resume a paused run', control, 'configureUnpause'),
      stop: command('stop a run cleanly, with a report', control, 'configureStop'),
      approve: command('approve a run that waits for you', control, 'configureApprove'),
      resolve: command('record the outcome of parked rows', control, 'configureResolve'),
      limits: command('change the rate and the bounds of a run in progress', control, 'configureLimits'),
      publish: command('publish an earlier export again, from its kept parts', reading, 'configurePublish'),
    },
  },
  schedule: {
    summary: 'manage scheduled runs',
    commands: {
      apply: command(
        'create, change and delete the schedules in Temporal so that they match a file',
        () => import('../schedules/apply.ts'),
      ),
      list: command(
        'list the schedules with their next run and the verdict of the last',
        schedules,
        'configureList',
      ),
      pause: command(
        'start no runs until it is unpaused; a run in progress continues',
        schedules,
        'configurePause',
      ),
      unpause: command('start runs at their times again', schedules, 'configureUnpause'),
      trigger: command('start a run now, even if the schedule is paused', schedules, 'configureTrigger'),
      delete: command(
        'delete a schedule; its runs continue, and `apply` creates it again',
        schedules,
        'configureDelete',
      ),
    },
  },
  state: {
    summary: 'show, reset, move and repair the state',
    commands: {
      show: command('list the watermarks: how far each incremental export has read', state, 'configureShow'),
      reset: command(
        'forget the watermark of a resource: its next incremental export reads the whole list',
        state,
        'configureReset',
      ),
      move: command('move the state of the data folder to PostgreSQL', state, 'configureMove'),
      repair: command(
        'after a restore, before the worker starts: rows that may have been sent since the backup become unknown',
        state,
        'configureRepair',
      ),
    },
  },
  verify: command(
    'check an export against its manifest and certificate, offline, or a warehouse against the export',
    () => import('./verify.ts'),
  ),
  compare: command(
    'show what changed between two exports of a list, with sums that balance',
    () => import('./compare.ts'),
  ),
  prune: command('remove old exports and uploads that nothing needs', () => import('./prune.ts')),
  up: command('run a Temporal dev server and a worker until Ctrl-C', () => import('./up.ts')),
  worker: command('run a worker until Ctrl-C', () => import('./worker.ts')),
  sandbox: command('run a stand-in for the billing service', () => import('./sandbox.ts')),
  completion: command('print a completion script for your shell', () => import('./completion.ts')),
} satisfies Commands
