import type { Commands } from '../command-line.ts'

const reading = () => import('./export.ts')
const control = () => import('./run-control.ts')
const showing = () => import('./run-show.ts')
const state = () => import('./state.ts')
const schedules = () => import('../schedules/control.ts')
const verifying = () => import('./verify.ts')

/** Every command; its file is loaded only when it is chosen. */
export const commands = {
  demo: {
    summary: 'run all three jobs against a sandbox',
    load: async () => (await import('../demo/demo.ts')).configure,
  },
  init: {
    summary: 'ask for the settings, try them, and write .env and schedules.yaml',
    load: async () => (await import('./init.ts')).configure,
  },
  check: {
    summary: 'check whether everything is in place',
    load: async () => (await import('./check.ts')).configure,
  },
  export: { summary: 'export lists of the service', load: async () => (await reading()).configureExport },
  fetch: {
    summary: 'export credit notes or cancellations by id',
    load: async () => (await reading()).configureFetch,
  },
  import: {
    summary: 'import a CSV file or a workbook, each row exactly once',
    load: async () => (await import('./import.ts')).configureImport,
  },
  recover: {
    summary: 'resume subscriptions that need attention, within bounds',
    load: async () => (await import('./recover.ts')).configureRecover,
  },
  run: {
    summary: 'list, follow and control runs',
    commands: {
      list: { summary: 'list the latest runs', load: async () => (await import('./run-list.ts')).configure },
      show: { summary: 'show the state of a run', load: async () => (await showing()).configureShow },
      watch: { summary: 'follow a run to its end', load: async () => (await showing()).configureWatch },
      report: {
        summary: 'show the report of a run',
        load: async () => (await showing()).configureReport,
      },
      open: {
        summary: 'open the page of a run in the browser',
        load: async () => (await showing()).configureOpen,
      },
      pause: { summary: 'pause a run', load: async () => (await control()).configurePause },
      unpause: { summary: 'resume a paused run', load: async () => (await control()).configureUnpause },
      stop: {
        summary: 'stop a run cleanly, with a report',
        load: async () => (await control()).configureStop,
      },
      approve: {
        summary: 'approve a run that waits for you',
        load: async () => (await control()).configureApprove,
      },
      resolve: {
        summary: 'record the outcome of parked rows',
        load: async () => (await control()).configureResolve,
      },
      limits: {
        summary: 'change the rate and the bounds of a run in progress',
        load: async () => (await control()).configureLimits,
      },
      publish: {
        summary: 'publish an earlier export again, from its kept parts',
        load: async () => (await reading()).configurePublish,
      },
    },
  },
  schedule: {
    summary: 'manage scheduled runs',
    commands: {
      apply: {
        summary: 'create, change and delete the schedules in Temporal so that they match a file',
        load: async () => (await import('../schedules/apply.ts')).configure,
      },
      list: {
        summary: 'list the schedules with their next run and the verdict of the last',
        load: async () => (await schedules()).configureList,
      },
      pause: {
        summary: 'start no runs until it is unpaused; a run in progress continues',
        load: async () => (await schedules()).configurePause,
      },
      unpause: {
        summary: 'start runs at their times again',
        load: async () => (await schedules()).configureUnpause,
      },
      trigger: {
        summary: 'start a run now, even if the schedule is paused',
        load: async () => (await schedules()).configureTrigger,
      },
      delete: {
        summary: 'delete a schedule; its runs continue, and `apply` creates it again',
        load: async () => (await schedules()).configureDelete,
      },
    },
  },
  state: {
    summary: 'show, reset, move and repair the state',
    commands: {
      show: {
        summary: 'list the watermarks: how far each incremental export has read',
        load: async () => (await state()).configureShow,
      },
      reset: {
        summary: 'forget the watermark of a resource: its next incremental export reads the whole list',
        load: async () => (await state()).configureReset,
      },
      move: {
        summary: 'move the state of the data folder to PostgreSQL',
        load: async () => (await state()).configureMove,
      },
      repair: {
        summary:
          'after a restore, before the worker starts: rows that may have been sent since the backup become unknown',
        load: async () => (await state()).configureRepair,
      },
    },
  },
  verify: {
    summary: 'check an export against its manifest, offline',
    load: async () => (await verifying()).configureVerify,
  },
  compare: {
    summary: 'compare the tables of a warehouse with an export, row by row',
    load: async () => (await verifying()).configureCompare,
  },
  prune: {
    summary: 'remove old exports and uploads that nothing needs',
    load: async () => (await import('./prune.ts')).configure,
  },
  up: {
    summary: 'run a Temporal dev server and a worker until Ctrl-C',
    load: async () => (await import('./up.ts')).configure,
  },
  worker: { summary: 'run a worker until Ctrl-C', load: async () => (await import('./worker.ts')).configure },
  sandbox: {
    summary: 'run a stand-in for the billing service',
    load: async () => (await import('./sandbox.ts')).configure,
  },
  completion: {
    summary: 'print a completion script for your shell',
    load: async () => (await import('./completion.ts')).configure,
  },
} satisfies Commands
